"""The Pareto front against a search over all pairs of rows."""

from __future__ import annotations

import numpy as np
import pytest

from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.sweep import Row, Sweep, pareto_front
from tvm_ext.errors import OptionError


def row(cycles: int, sram: int, energy: float, macs: int = 100, pes: int = 64) -> Row:
    hardware = Accelerator(sram_bytes=sram, pes=pes)
    return Row(hardware, "auto", cycles, {"CONV": cycles}, macs, 0, 0, energy, 1, 1)


def dominates(a: Row, b: Row) -> bool:
    """By the definition, a comparison at a time."""
    pairs = [
        (a.cycles, b.cycles), (a.accelerator.sram_bytes, b.accelerator.sram_bytes),
        (a.energy_pj, b.energy_pj), (b.macs, a.macs),
    ]  # fmt: skip
    return all(x <= y for x, y in pairs) and any(x < y for x, y in pairs)


@pytest.mark.parametrize("seed", range(20))
def test_against_all_pairs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    # Few values, so that there are ties and equal rows.
    values = rng.integers(1, 7, (int(rng.integers(1, 60)), 4)).tolist()
    rows = [row(c, s, float(e), 90 + 5 * (m > 3)) for c, s, e, m in values]
    expected = [a for a in rows if not any(dominates(b, a) for b in rows)]
    assert list(pareto_front(rows)) == expected
    assert Sweep(tuple(rows)).pareto() == tuple(expected)


def test_by_hand() -> None:
    small, fast, worse, equal = row(9, 1, 5.0), row(5, 4, 4.0), row(9, 4, 4.0), row(9, 1, 5.0)
    assert pareto_front([small, fast, worse, equal]) == (small, fast, equal)
    assert pareto_front([]) == ()


def test_other_objectives() -> None:
    narrow, wide = row(9, 1, 5.0, pes=32), row(5, 1, 5.0, pes=64)
    assert pareto_front([narrow, wide]) == (wide,)
    assert pareto_front([narrow, wide], ("cycles", "pes")) == (narrow, wide)
    with pytest.raises(OptionError, match="objective 'beauty'; allowed: cycles, sram_bytes"):
        pareto_front([narrow], ("beauty",))


def test_leaving_work_to_the_cpu_beats_nothing_that_does_more() -> None:
    less, more = row(1, 1, 1.0, macs=50), row(9, 1, 9.0, macs=100)
    assert pareto_front([less, more]) == (less, more)
