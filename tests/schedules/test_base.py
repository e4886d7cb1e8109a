"""The registry of algorithms, and how parameters are checked."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tests.schedules.convolutions import CASES
from tests.schedules.kernels import AVX512, HOST, NEON
from tvm_ext.schedules import base
from tvm_ext.schedules.base import YES, Algorithm, algorithms, refuse, register


@dataclass(frozen=True)
class Count:
    """A workload of its own, which no algorithm of the library takes."""

    n: int


class Counting(Algorithm[Count]):
    name = "counting"
    workload_type = Count

    def supports(self, workload: Count, target: Any) -> base.Support:
        return YES if workload.n < 9 else refuse(f"n {workload.n}; at most 8")

    def space(self, workload: Count, target: Any) -> dict[str, tuple[Any, ...]]:
        return {"step": (1, 2, 4), "fast": (False, True)}

    def default(self, workload: Count, target: Any) -> dict[str, Any]:
        return {"step": 1, "fast": False}

    def cost(self, workload: Count, params: base.Params, target: Any) -> float:
        return 1.0

    def kernel(self, workload: Count, params: Any, target: Any, layout: Any) -> Any:
        raise NotImplementedError


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy, so that the library's own stays as it is."""
    monkeypatch.setattr(base, "_REGISTRY", dict(base._REGISTRY))


def test_registered_classes_are_found_by_name_and_workload(registry: None) -> None:
    assert register(Counting) is Counting
    assert isinstance(algorithms()["counting"], Counting)
    assert list(algorithms(Count(3))) == ["counting"]
    assert "counting" not in algorithms(CASES["3x3"])
    with pytest.raises(ValueError, match="'counting' is registered twice"):
        register(Counting)


def test_a_refusal_is_false_and_says_why() -> None:
    assert Counting().supports(Count(8), HOST)
    support = Counting().supports(Count(9), HOST)
    assert not support
    assert support.reason == "n 9; at most 8"


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        ({"step": 2, "fast": True}, ""),
        ({"step": 3, "fast": True}, r"counting\.step = 3 is not one of \[1, 2, 4\]"),
        ({"step": 2, "fast": True, "unroll": 2}, "has no parameter 'unroll'; allowed: step, fast"),
        ({"step": 2}, r"algorithm counting needs parameters \['fast'\]"),
    ],
)
def test_parameters_are_checked_against_the_space(params: dict[str, Any], problem: str) -> None:
    found = Counting().check(Count(3), params, HOST)
    assert re.search(problem, found)
    assert bool(found) == bool(problem)


def test_defaults() -> None:
    """Of an algorithm that only knows the model's layout and has nothing to pack."""
    algorithm, weight = Counting(), np.arange(6.0).reshape(2, 3).T
    assert algorithm.layouts(Count(3), HOST) == ((0, 0),)
    assert algorithm.tolerance(Count(3), {}) == 1e-4
    (packed,) = algorithm.pack(Count(3), {}, HOST, [weight])
    assert packed.flags.c_contiguous
    np.testing.assert_array_equal(packed, weight)


@pytest.mark.parametrize("target", [HOST, AVX512, NEON], ids=["host", "avx512", "neon"])
@pytest.mark.parametrize("key", CASES)
def test_every_convolution_algorithm_has_legal_defaults_and_a_cost(key: str, target: Any) -> None:
    w, taking = CASES[key], []
    for name, algorithm in algorithms(w).items():
        if algorithm.supports(w, target):
            params = algorithm.default(w, target)
            assert algorithm.check(w, params, target) == ""
            assert algorithm.cost(w, params, target) > 0
            taking.append(name)
    assert "conv_direct" in taking
