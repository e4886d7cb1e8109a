"""The density at which two costs are equal."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests.schedules.oracles import conv_workload
from tests.schedules.sparse_weights import sparse_weights
from tvm_ext.break_even import break_even
from tvm_ext.sparsity import Sparsity


@pytest.mark.parametrize(("seconds", "density"), [(70, 0.6), (10, 0.0), (5, 0.0), (500, 1.0)])
def test_where_the_costs_meet(seconds: float, density: float) -> None:
    """A kernel that takes 10 seconds, and 1 for each of 100 weights."""
    algorithm = SimpleNamespace(cost=lambda w, params, target: 10 + w.sparsity.nonzeros)
    weights = sparse_weights((10, 10, 1, 1), 0.3)
    w = replace(conv_workload(10, (4, 4), 10, 1), sparsity=Sparsity.of(weights))
    found = break_even(algorithm, w, {}, None, seconds)
    assert found == pytest.approx(density, abs=0.01)


def test_panels_are_never_fuller_than_full() -> None:
    sparsity = Sparsity.of(sparse_weights((16, 8, 3, 3), 0.2))
    full = sparsity.at_density(1.0)
    assert full.nonzeros == 16 * 72
    assert full.kept(16) == 72
    assert full.kept(1) == 16 * 72
    assert sparsity.at_density(sparsity.density) == sparsity
