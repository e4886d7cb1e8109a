"""Writes docs/supported_ops.md from the tables that the partitioner checks.

``python -m tvm_ext.codegen.supported_ops_page docs/supported_ops.md`` writes the page.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tvm_ext.codegen.accelerator import DEPTHWISE
from tvm_ext.codegen.byoc.limits import CHOICES, LIMITS
from tvm_ext.codegen.byoc.patterns import PATTERNS

_HEAD = """\
# What the accelerator takes

This page is generated from `codegen/byoc/patterns.py` and `codegen/byoc/limits.py`; don't edit it.
`python -m tvm_ext.codegen.supported_ops_page docs/supported_ops.md` writes it.

An operator is offloaded when it reads int8 or uint8 activations with one constant scale and zero
point a tensor, and its result is quantised to the same type: in QDQ models as
`DequantizeLinear -> operator -> QuantizeLinear`, in QOperator models as `QLinearConv` and its like.
Operators that follow each other become one subgraph. Everything else runs on the CPU, also what
has no tile that fits the SRAM; `Partition.refusals` and the plan's notes say why. All of this is
found when a model is built: the first run refuses nothing.

Results are ONNX Runtime's, bit for bit, but for the operators of which the table says otherwise.

## Operators

"""

_BEHIND = """
Behind each operator, ReLU, ReLU6 and Clip with constant limits become limits of its result. Behind
convolutions and products, a bias and a batch norm with constant statistics become part of them.

## Limits

"""


def supported_ops_page() -> str:
    """The page, in Markdown."""
    rows = [
        (
            pattern.onnx, ", ".join(f"`{name}`" for name in pattern.operators),
            f"`{pattern.layer.__name__}`", pattern.needs,
        )
        for pattern in PATTERNS
    ]  # fmt: skip
    limits = [
        (", ".join(k.__name__ for k in limit.kinds), limit.subject, limit.allowed, limit.note)
        for limit in LIMITS
    ]
    choices = [
        (f"`{c.option}`", c.subject, c.needed, f"stays on the CPU with {c.value}") for c in CHOICES
    ]
    return (
        _HEAD
        + _table(("ONNX", "Relax", "Layer", "Needs"), rows)
        + _BEHIND
        + _table(("Layer", "Number", "Allowed", "Note"), limits)
        + "\nOptions of the hardware description rule out others "
        + f"(`depthwise` is one of {', '.join(DEPTHWISE)}):\n\n"
        + _table(("Option", "Subject", "Taken with", "Otherwise"), choices)
    )


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines)


def main(arguments: list[str]) -> None:
    """Write the page to the path that is the only argument."""
    Path(arguments[0]).write_text(supported_ops_page(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
