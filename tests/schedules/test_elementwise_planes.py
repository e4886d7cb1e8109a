"""Chains that read maps in channel blocks and store planes, against numpy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.schedules.chains import chain, floats
from tests.schedules.kernels import AVX512, HOST, NEON, Case, assembly, run_all
from tvm_ext.schedules.base import algorithms
from tvm_ext.schedules.elementwise_planes import is_map
from tvm_ext.schedules.epilogue import Operand, Step
from tvm_ext.schedules.layout import to_blocked
from tvm_ext.schedules.workload import ElementwiseWorkload

V = HOST.lanes
STEPS = (
    Step("multiply", (("operand", 0), ("operand", 1))),
    Step("add", (("value", 0), ("operand", 2))),
)
# Output, then three operands: shapes and how often their elements are repeated.
CASES = {
    "two maps and a scale": (
        (2, V + 3, 6, V + 1), (2, V + 3, 6, V + 1), (), (1, V + 3, 1, 1), (),
        (1, V + 3, 6, V + 1), (),
    ),
    "enlarged by two factors": (
        (1, 2 * V, 8, 4 * V), (1, 2 * V, 2, V), (1, 1, 4, 4), (1, 2 * V, 1, 1), (),
        (1, 2 * V, 4, 4 * V), (1, 1, 2, 1),
    ),
    "enlarged by three, few channels": (
        (1, 3, 6, 15), (1, 3, 2, 5), (1, 1, 3, 3), (1, 1, 6, 15), (), (1, 3, 6, 15), (),
    ),
    "fewer positions than lanes": (
        (1, V, 1, 2), (1, V, 1, 2), (), (1, 1, 1, 1), (), (1, V, 1, 1), (),
    ),
    "rows that one task doesn't hold": (
        (1, V, 60, 160), (1, V, 30, 80), (1, 1, 2, 2), (1, V, 1, 1), (), (1, V, 60, 160), (),
    ),
}  # fmt: skip


def _workload(shape: tuple[int, ...], *operands: tuple[int, ...]) -> ElementwiseWorkload:
    pairs = zip(operands[::2], operands[1::2], strict=True)
    made = [Operand(own, "float32", repeat=repeat) for own, repeat in pairs]
    return chain(shape, STEPS, made)


def _stored(array: np.ndarray, operand: Operand) -> np.ndarray:
    """In blocks if it's a map; what reads its missing lanes gets NaN."""
    if not is_map(operand):
        return array
    missing = np.full((array.shape[0], -array.shape[1] % V, *array.shape[2:]), np.nan, "float32")
    return to_blocked(np.concatenate([array, missing], 1), V)


def test_matches_numpy() -> None:
    cases, wants = [], []
    for i, arguments in enumerate(CASES.values()):
        w = _workload(*arguments)
        arrays = [floats(*o.shape, seed=j) for j, o in enumerate(w.epilogue.operands)]
        seen = []
        for x, o in zip(arrays, w.epilogue.operands, strict=True):
            for axis, factor in enumerate(o.factors):
                x = np.repeat(x, factor, axis)
            seen.append(x)
        wants.append(seen[0] * seen[1] + seen[2])
        stored = [_stored(x, o) for x, o in zip(arrays, w.epilogue.operands, strict=True)]
        assert (V, 0) in algorithms()["elementwise"].layouts(w, HOST)
        params = {"tasks": (1, 4 * HOST.cores)[i % 2]}
        cases.append(Case("elementwise", w, operands=stored, layout=(V, 0), params=params))
    for name, got, want in zip(CASES, run_all(cases), wants, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6, err_msg=name)


@pytest.mark.parametrize(
    "shape,operands",
    (
        ((1, 32, 4, 4), ((1, 32, 1, 1), (), (1, 1, 4, 4), (), (1, 1, 1, 1), ())),  # no map
        ((1, 32, 4, 4), ((1, 32, 4, 1), (), (1, 32, 4, 4), (), (1, 1, 1, 1), ())),  # half of one
        ((1, 32, 4), ((1, 32, 4), (), (1, 32, 1), (), (1, 32, 1), ())),
    ),
)
def test_other_chains_store_what_they_read(shape: tuple[int, ...], operands: tuple) -> None:
    w = _workload(shape, *operands)
    assert (HOST.lanes, 0) not in algorithms()["elementwise"].layouts(w, HOST)


def test_only_floats_turn() -> None:
    w = replace(_workload(*CASES["two maps and a scale"]), dtype="int8")
    assert (V, 0) not in algorithms()["elementwise"].layouts(w, HOST)


def test_vector_registers_of_other_targets() -> None:
    w = _workload((1, 32, 8, 32), *CASES["two maps and a scale"][1:])
    full = Operand((1, 32, 8, 32), "float32")
    operands = (full, Operand((1, 32, 1, 1), "float32"), full)
    w = replace(w, epilogue=replace(w.epilogue, operands=operands))
    assert "%zmm" in assembly("elementwise", w, AVX512, (16, 0))
    assert "zip1" in assembly("elementwise", w, NEON, (4, 0))
