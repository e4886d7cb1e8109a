"""The page of the instruction set, made from the definitions.

``python -m tvm_ext.codegen.isa_page`` writes ``docs/isa.md``; ``--check`` only compares.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

from tvm_ext.codegen.isa import DEFINITIONS, ISA_VERSION, TOKENS, Definition, Unit, registers_of

PAGE = Path("docs/isa.md")

_HEAD = """\
# The accelerator's instruction set

Made from the definitions in `codegen/isa/` by `python -m tvm_ext.codegen.isa_page`: don't edit.
ISA version {version}. Cycles are explained in [simulator.md](simulator.md).

## Machine

Three units run side by side, each in program order: {units}.
They form a ring, load to compute to store to load, so the previous and the next unit of each are
the two others. Between neighbours there are queues of tokens in both directions, empty at first and
as long as needed. An instruction takes the tokens that its `pop` bits name before it starts, and
gives those that its `push` bits name when it has ended. Accesses of two units to the same bytes, of
which one writes, have to be ordered by tokens.

A result may be in place of the operands that an instruction's section names, as the very same box;
it shares no byte with any other.

SRAM and system memory are byte-addressed and little-endian. An int8 tensor is a box of rows, pixels
and channels, channels next to each other, with a row and a pixel pitch in bytes; an input's pitch
may be 0, which repeats it. int32 and float32 values are dense, their addresses multiples of 4.
`round` is to nearest, ties to even; `clamp` is to `clamp_low` and `clamp_high`; float32 and int32
name the type that a step is rounded or wrapped to; lanes are `pes / pixel_parallel`.

## Words

An instruction has 128 bits, little-endian: the opcode in bits 0 to 7; the token bits
{tokens} in bits 8 to 11; zeros in 12 to 15; the fields from
bit 16 on, in the order below; the rest zero.
"""


def isa_page() -> str:
    """The whole page, in Markdown."""
    parts = [
        _HEAD.format(
            version=ISA_VERSION,
            units=", ".join(unit.label for unit in Unit),
            tokens=", ".join(f"`{token}`" for token in TOKENS),
        ),
        "## Instructions\n",
        _table(
            ("mnemonic", "opcode", "unit", "takes", "gives", "what it does"),
            (
                (
                    f"[{d.mnemonic}](#{d.mnemonic.lower()})", f"`{d.opcode:#04x}`", _unit(d),
                    d.inputs, d.output, d.summary,
                )
                for d in DEFINITIONS.values()
            ),
        ),
        "## Registers\n",
        *(_registers(units) for units in ((Unit.COMPUTE,), (Unit.LOAD, Unit.STORE))),
        *(_section(definition) for definition in DEFINITIONS.values()),
    ]  # fmt: skip
    return "\n".join(parts)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or compare the page; 1 if it differs."""
    parser = argparse.ArgumentParser(prog="python -m tvm_ext.codegen.isa_page", description=__doc__)
    parser.add_argument("path", nargs="?", type=Path, default=PAGE)
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    options = parser.parse_args(arguments)
    if not options.check:
        options.path.write_text(isa_page(), encoding="utf-8")
        return 0
    same = options.path.exists() and options.path.read_text(encoding="utf-8") == isa_page()
    return 0 if same else 1


def _unit(definition: Definition) -> str:
    return "each" if definition.mnemonic == "OP_SET" else definition.unit.label


def _registers(units: tuple[Unit, ...]) -> str:
    labels = " and of the ".join(unit.label for unit in units)
    rows = (
        (str(r.number), f"`{r.name}`", r.kind, str(r.reset), r.meaning)
        for r in registers_of(units[0]).values()
    )
    return f"Of the {labels} unit:\n\n" + _table(
        ("number", "name", "kind", "at start", "meaning"), rows
    )


def _section(definition: Definition) -> str:
    lines = [
        f"## {definition.mnemonic}\n",
        f"{definition.summary[0].upper()}{definition.summary[1:]}.\n",
    ]
    if definition.fields:
        start, rows = 16, []
        for field in definition.fields:
            last = start + field.bits - 1
            bits = str(start) if field.bits == 1 else f"{start}-{last}"
            rows.append((f"`{field.name}`", bits, field.meaning))
            start = last + 1
        lines.append(_table(("field", "bits", "meaning"), rows))
    lines.append(f"- Result: {definition.meaning}.")
    lines.append(f"- Cycles: {definition.cost}.")
    if definition.registers:
        lines.append(f"- Reads: {', '.join(f'`{name}`' for name in definition.registers)}.")
    if definition.in_place:
        lines.append(f"- May be in place of: {', '.join(definition.in_place)}.")
    return "\n".join(lines) + "\n"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines
    )


if __name__ == "__main__":
    raise SystemExit(main())
