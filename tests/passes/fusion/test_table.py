"""The fusion table against the published one, spelt out."""

from __future__ import annotations

import pytest

from tvm_ext.passes.fusion.mapping_type import MappingType
from tvm_ext.passes.fusion.table import Decision, fuse

_COLUMNS = ("One-to-One", "One-to-Many", "Many-to-Many", "Reorganize", "Shuffle")
_TABLE = """
One-to-One   | One-to-One, fuse  | One-to-Many, fuse     | Many-to-Many, fuse    | Reorganize, fuse      | Shuffle, fuse
One-to-Many  | One-to-Many, fuse | One-to-Many, profile  | Many-to-Many, never   | One-to-Many, profile  | One-to-Many, profile
Many-to-Many | Many-to-Many, fuse | Many-to-Many, profile | Many-to-Many, never  | Many-to-Many, profile | Many-to-Many, profile
Reorganize   | Reorganize, fuse  | One-to-Many, fuse     | Many-to-Many, profile | Reorganize, fuse      | Reorganize, fuse
Shuffle      | Shuffle, fuse     | One-to-Many, fuse     | Many-to-Many, profile | Reorganize, fuse      | Shuffle, fuse
"""  # noqa: E501


def _cells() -> list[tuple[str, str, str, str]]:
    found = []
    for line in _TABLE.strip().splitlines():
        first, *cells = (part.strip() for part in line.split("|"))
        for second, cell in zip(_COLUMNS, cells, strict=True):
            found.append((first, second, *cell.split(", ")))
    return found


@pytest.mark.parametrize(("first", "second", "fused", "decision"), _cells())
def test_pairs(first: str, second: str, fused: str, decision: str) -> None:
    assert fuse(MappingType(first), MappingType(second)) == (
        MappingType(fused),
        Decision(decision),
    )
