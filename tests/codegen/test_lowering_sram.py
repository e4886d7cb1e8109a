"""Addresses in SRAM."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from tvm_ext.codegen.lowering.sram import Lifetime, free_gaps, pack, place_lifetimes


def test_gaps_begin_aligned() -> None:
    assert free_gaps([(0, 10), (40, 64), (32, 48)], 100) == ((16, 32), (64, 100))
    assert free_gaps([], 64) == ((0, 64),)
    assert free_gaps([(0, 64)], 64) == ()


def test_pack_puts_large_buffers_first() -> None:
    assert pack([10, 40, 5], ((0, 48), (64, 96))) == [64, 0, 80]
    assert pack([10, 50], ((0, 48), (64, 96))) is None


def test_buffers_that_live_together_do_not_overlap() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        items = []
        for index in range(12):
            first = int(rng.integers(0, 10))
            size, life = int(rng.integers(1, 300)), int(rng.integers(0, 4))
            items.append(Lifetime(str(index), size, first, first + life))
        placed = place_lifetimes(items, 1200)
        if placed is None:
            continue
        for a, b in combinations(items, 2):
            if a.first <= b.last and b.first <= a.last:
                begin, end = placed[a.name], placed[b.name]
                assert begin + a.nbytes <= end or end + b.nbytes <= begin
        assert all(placed[i.name] + i.nbytes <= 1200 for i in items)


def test_too_much_at_once_finds_no_place() -> None:
    assert place_lifetimes([Lifetime("a", 60, 0, 1), Lifetime("b", 60, 1, 2)], 100) is None
    placed = place_lifetimes([Lifetime("a", 60, 0, 0), Lifetime("b", 60, 1, 2)], 100)
    assert placed == {"a": 0, "b": 0}
