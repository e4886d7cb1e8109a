"""`batch_matmul`: products of two run-time tensors, against NumPy in float64."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.schedules import oracles
from tests.schedules.kernels import AVX512, HOST, NEON, Case, assembly, fma_lines
from tests.schedules.products import TOLERANCE
from tests.schedules.strided import agree, product
from tvm_ext.schedules.base import algorithms
from tvm_ext.schedules.epilogue import Epilogue, Operand, Step
from tvm_ext.schedules.matmul_workload import MatmulWorkload
from tvm_ext.schedules.strided_view import StridedView


def swapped(array: np.ndarray) -> np.ndarray:
    return np.swapaxes(array, -1, -2)


def heads(rows: np.ndarray, count: int) -> np.ndarray:
    """(batch, tokens, count * size) as (batch, count, tokens, size)."""
    batch, tokens, width = rows.shape
    return rows.reshape(batch, tokens, count, width // count).transpose(0, 2, 1, 3)


def plain(left: tuple[int, ...], right: tuple[int, ...], **params: object) -> tuple[Case, object]:
    return product(oracles.random(left, 1), oracles.random(right, 2), **params)


def test_sizes_around_the_tile() -> None:
    sizes = [(1, 3), (5, 7), (6, 8), (7, 9), (30, 47)]
    cases: dict[object, tuple[Case, np.ndarray]] = {}
    for m, n in sizes:
        left = oracles.random((2, m, 17), 1)
        cases[m, n] = product(left, oracles.random((2, 17, n), 2))
        cases[m, n, "transposed"] = product(left, swapped(oracles.random((2, n, 17), 2)))
    agree(cases, TOLERANCE)


@pytest.mark.parametrize(
    ("batch", "tokens", "count", "size"),
    [(1, 128, 12, 64), (2, 50, 3, 32), (1, 197, 2, 64), (1, 33, 4, 80), (2, 7, 3, 5)],
)
def test_attention(batch: int, tokens: int, count: int, size: int) -> None:
    """Heads of one buffer with all of Q, K and V; the result is stored with its heads joined."""
    width = count * size
    qkv = oracles.random((batch, tokens, 3 * width), 1)
    q, k, v = (heads(qkv[..., i * width : (i + 1) * width], count) for i in range(3))
    mask = Operand((batch, 1, 1, tokens), "float32")
    steps = (
        Step("multiply", (("value", 0), ("const", size**-0.5))),
        Step("add", (("value", 1), ("operand", 0))),
    )
    scores = oracles.random((batch, count, tokens, tokens), 2)
    weighted = product(scores, v, (batch, tokens, width), lambda whole: heads(whole, count))
    plain_scores = product(q, swapped(k))
    agree({"scores": plain_scores, "result": weighted}, TOLERANCE)
    masked, _ = product(q, swapped(k), epilogue=Epilogue(steps, (mask,)))
    want = plain_scores[1] * size**-0.5 + masked.operands[0]
    agree({"masked": (masked, want)}, TOLERANCE)


def test_epilogue_over_the_views_own_dimensions() -> None:
    """A bias of each batch element, and a residual, with the result stored in another order."""
    shape = (2, 3, 13, 20)
    epilogue = oracles.residual_epilogue(Operand((2, 1, 1, 20), "float32"), shape)
    left, right = oracles.random((2, 3, 13, 10), 1), oracles.random((2, 3, 10, 20), 2)
    cases: dict[object, tuple[Case, np.ndarray]] = {
        copy: product(left, right, epilogue=epilogue, copy=copy) for copy in (False, True)
    }
    cases["stored by heads"] = product(
        left, right, (2, 13, 60), lambda whole: heads(whole, 3), epilogue=epilogue
    )
    agree(cases, TOLERANCE)


def test_broadcast_batches() -> None:
    cases = {
        "one right side": plain((2, 5, 8), (1, 8, 9)),
        "of rank 2": plain((2, 5, 8), (8, 9)),
        "one left side": plain((5, 8), (3, 8, 9)),
        "both": plain((3, 1, 5, 8), (2, 8, 9)),
        "one row": plain((3, 1, 8), (3, 8, 9)),
    }
    agree(cases, TOLERANCE)


def test_parts_of_tensors() -> None:
    """Slices with offsets, gaps and backwards, of operands and result."""
    left, right = oracles.random((4, 15, 30), 1), oracles.random((4, 40, 25), 2)
    cases = {
        "gaps": product(left[1::2, ::2, 3:28:3], right[:2, 9:18, 2:19]),
        "backwards": product(left[::-1, ::-1, ::-1], right[:, 30:0:-1, :]),
        "columns apart": product(left[..., :20], right[:, 1:21, ::2]),
        "columns backwards": product(left[..., :20], right[:, 1:21, ::-1]),
        "inside": product(left, right[:, :30], (5, 17, 50), lambda whole: whole[1:, 2:, 7:32]),
    }
    agree(cases, TOLERANCE)


@settings(max_examples=5, deadline=None, derandomize=True)
@given(st.data())
def test_any_order_of_dimensions(data: st.DataObject) -> None:
    cases = {}
    for number in range(6):
        *batch, m, n, k = (data.draw(st.sampled_from([1, 2, 3, 8, 17])) for _ in range(5))
        orders = [data.draw(st.permutations(range(4))) for _ in range(2)]
        left, right = (
            oracles.random(tuple(shape[a] for a in order), seed).transpose(np.argsort(order))
            for seed, order, shape in zip(
                (1, 2), orders, ((*batch, m, k), (*batch, k, n)), strict=True
            )
        )
        # The result's columns stay side by side.
        order = (*data.draw(st.permutations(range(3))), 3)
        shape = tuple((*batch, m, n)[a] for a in order)
        back = np.argsort(order)
        cases[number, left.shape, right.shape, str(orders), order] = product(
            left, right, shape, lambda whole, back=back: whole.transpose(back)
        )
    agree(cases, TOLERANCE)


def test_special_values_stay_in_their_rows() -> None:
    """Below a vector of columns too, where lanes are computed that nothing reads."""
    cases = {}
    for n in (5, 21):
        left, right = oracles.random((2, 9, 19), 1), np.abs(oracles.random((2, n, 19), 2))
        left[0, 0, 3], left[1, -1, 18] = np.nan, -np.inf
        cases[n] = product(left, swapped(right))
    for case, want in cases.values():
        finite = np.isfinite(want)
        assert finite.sum() == want.size - 2 * want.shape[-1]
        (got,) = oracles.run_all([case])
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_blocked_loops() -> None:
    cases = {}
    for name, value in [("k_parts", 4), ("chunks", 3), ("pieces", 3)]:
        cases[name] = plain((2, 23, 64), (2, 64, 50), **{name: value})
        right = swapped(oracles.random((2, 50, 64), 2))
        cases[name, "transposed"] = product(oracles.random((2, 23, 64), 1), right, **{name: value})
    agree(cases, TOLERANCE)


def test_refusals_and_illegal_parameters() -> None:
    w, algorithm = MatmulWorkload.of((2, 8, 8), (2, 8, 8)), algorithms()["batch_matmul"]
    assert "packed is True" in algorithm.supports(replace(w, packed=True), HOST).reason
    turned = StridedView.contiguous((2, 8, 8)).permute((0, 2, 1))
    reason = algorithm.supports(replace(w, out=turned), HOST).reason
    assert reason == "the result's last stride is 8; only 1"
    transposed = replace(w, rhs=turned)
    params = algorithm.default(transposed, HOST)
    problem = algorithm.check(transposed, {**params, "copy": False}, HOST)
    assert problem == "batch_matmul.copy = False is not one of [True]"


def test_copies_cost_what_their_strides_make_them() -> None:
    algorithm, base = algorithms()["batch_matmul"], StridedView.contiguous((64, 64, 64))
    vectors, squares, elements = (
        MatmulWorkload.of(base.shape, base.shape, rhs=base.permute(axes))
        for axes in ((0, 1, 2), (0, 2, 1), (2, 1, 0))
    )
    params = algorithm.default(vectors, HOST)
    costs = [algorithm.cost(w, params, HOST) for w in (vectors, squares, elements)]
    assert costs == sorted(set(costs))


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(("target", "fma"), [(AVX512, "zmm"), (NEON, "fmla\tv")])
def test_other_targets_use_their_vectors(target: object, fma: str, transposed: bool) -> None:
    w = MatmulWorkload.of((2, 64, 64), (2, 64, 64))
    if transposed:
        w = replace(w, rhs=w.rhs.permute((0, 2, 1)))
    lines = fma_lines(assembly("batch_matmul", w, target))
    assert any(fma in line for line in lines)
