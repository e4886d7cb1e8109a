"""The generated parts of docs/fusion.md. ``python -m tests.passes.fusion.page`` writes them."""

from __future__ import annotations

from pathlib import Path

from benchmarks.results import markdown_table
from tests.passes.fusion.operators import CASES
from tvm_ext.passes.fusion.mapping_type import MappingType, mapping_types
from tvm_ext.passes.fusion.table import fuse
from tvm_ext.passes.rewriting.rule import rules

PAGE = Path(__file__).parents[3] / "docs/fusion.md"


def sections() -> dict[str, str]:
    """Text by the name of its markers."""
    types = tuple(MappingType)
    table = [
        [
            first.value,
            *(f"{fuse(first, s).type.value}, {fuse(first, s).decision.value}" for s in types),
        ]
        for first in types
    ]
    operators = [
        [case.name, " x ".join(str(s) for s in case.shapes), ", ".join(mapping_types(case.call()))]
        for case in CASES
    ]
    rows = [
        [r.name, f"`{r.formula}`", f"{r.tolerance:g}", r.on]
        for r in sorted(rules().values(), key=lambda r: r.name)
    ]
    return {
        "table": markdown_table(("first, then", *(t.value for t in types)), table),
        "rules": markdown_table(("rule", "what it does", "tolerance", "on"), rows),
        "types": markdown_table(("operator", "inputs", "type for each input"), operators),
    }


def split(text: str, name: str) -> tuple[str, str, str]:
    """What stands before, between and after the markers of a section."""
    begin, end = f"<!-- begin:{name} -->\n", f"\n<!-- end:{name} -->"
    before, rest = text.split(begin)
    inside, after = rest.split(end)
    return before + begin, inside, end + after


def main() -> None:
    """Write the generated sections."""
    text = PAGE.read_text()
    for name, body in sections().items():
        before, _, after = split(text, name)
        text = before + body + after
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
