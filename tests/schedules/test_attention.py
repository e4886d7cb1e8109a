"""`attention`: two products and the softmax between them, against NumPy in float64."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.schedules import oracles
from tests.schedules.attention import attention, heads, swapped, tensors, workload
from tests.schedules.kernels import (
    AVX512,
    HOST,
    NEON,
    Case,
    assembly,
    fma_lines,
    same_on_any_threads,
)
from tests.schedules.strided import agree
from tvm_ext.plan import LayerPlan, Plan
from tvm_ext.schedules.base import algorithms
from tvm_ext.schedules.epilogue import Epilogue, Operand, Step
from tvm_ext.schedules.strided_view import StridedView
from tvm_ext.target import resolve

TOLERANCE = 3e-6  # of the largest output
AVX2 = resolve("core-avx2")
V = HOST.lanes

SCALE = Step("multiply", (("value", 0), ("const", 0.3)))
ADD = (SCALE, Step("add", (("value", 1), ("operand", 0))))
WHERE = (SCALE, Step("where", (("operand", 0), ("value", 1), ("const", -1e9))))


def test_sizes_around_vectors_and_tiles() -> None:
    sizes = [
        (1, 1, 1), (1, V, 3), (3, V - 1, V + 1), (7, V + 1, V - 1), (29, 2 * V + 3, 2 * V),
        (30, 47, 5), (64, 128, 32), (197, 197, 64),
    ]  # fmt: skip
    cases: dict[object, tuple[Case, np.ndarray]] = {
        (m, n, d): attention(*tensors((2,), m, n, d)) for m, n, d in sizes
    }
    cases["values of another width"] = attention(*tensors((3,), 13, 21, 8, 19))
    cases["no batch"] = attention(*tensors((), 13, 21, 8))
    agree(cases, TOLERANCE)


@pytest.mark.parametrize(("batch", "tokens", "count", "size"), [(1, 128, 12, 32), (3, 21, 2, 20)])
def test_heads_of_one_buffer(batch: int, tokens: int, count: int, size: int) -> None:
    """Q, K and V lie in one tensor; the result is stored with its heads joined."""
    width = count * size
    qkv = oracles.random((batch, tokens, 3 * width), 1)
    q, k, v = (heads(qkv[..., i * width : (i + 1) * width], count) for i in range(3))
    shape = (batch, tokens, width)
    agree({"": attention(q, swapped(k), v, shape, lambda x: heads(x, count))}, TOLERANCE)


@pytest.mark.parametrize(
    "shape",
    [(3, 2, 9, 21), (3, 1, 1, 21), (1, 1, 9, 21), (1, 2, 1, 1), (3, 2, 9, 1), (21,), (9, 21)],
    ids=str,
)
def test_masks_of_every_broadcast(shape: tuple[int, ...]) -> None:
    data = tensors((3, 2), 9, 21, 8)
    added = oracles.random(shape, 4)
    kept = added > 0.3
    cases = {
        "added": attention(*data, steps=ADD, masks=(added,), mean=lambda x, m: 0.3 * x + m),
        "where": attention(
            *data, steps=WHERE, masks=(kept,), mean=lambda x, m: np.where(m, 0.3 * x, -1e9)
        ),
    }
    agree(cases, TOLERANCE)


def test_causal_masks() -> None:
    """Also of infinities, of which every row has one finite score at least."""
    cases = {}
    for m, n in [(37, 37), (5, 20)]:
        kept = np.tril(np.ones((1, m, n), "bool"), n - m)
        infinite = np.where(kept, 0, -np.inf).astype("float32")
        data = tensors((3,), m, n, 12)
        cases[m, n, "where"] = attention(
            *data, steps=WHERE, masks=(kept,), mean=lambda x, m: np.where(m, 0.3 * x, -1e9)
        )
        cases[m, n, "added"] = attention(
            *data, steps=ADD, masks=(infinite,), mean=lambda x, m: 0.3 * x + m
        )
    agree(cases, TOLERANCE)


def test_large_scores_do_not_overflow() -> None:
    cases = {}
    for offset in (-1e4, 1e4):
        q, keys, v = tensors((2,), 11, 27, 8)
        mask = np.full((1, 1, 27), offset, "float32")
        cases[offset] = attention(
            q * 0, keys, v, steps=ADD, masks=(mask,), mean=lambda x, m: 0.3 * x + m
        )
        cases[offset, "products"] = attention(q * np.float32(offset), keys, v)
    agree(cases, 2e-5)


def test_nan_stays_in_its_row() -> None:
    q, keys, v = tensors((2,), 9, 21, 8)
    q[1, 4, 2] = np.nan
    case, want = attention(q, keys, v)
    assert np.isnan(want).sum() == v.shape[-1]
    agree({"": (case, want)}, TOLERANCE)


def test_broadcast_batches() -> None:
    q, keys, v = tensors((2, 4), 9, 21, 8)
    cases = {
        "keys and values of all heads": attention(q, keys[:, :1].copy(), v[:, :1].copy()),
        "of all": attention(q, keys[0, 0].copy(), v),
    }
    agree(cases, TOLERANCE)


def test_every_parameter_gives_the_same() -> None:
    choices = [
        {"rows": 1}, {"rows": 7, "chunks": 3}, {"rows": 5, "chunks": 23}, {"rows": 23, "chunks": 2},
        {"vectors": 1}, {"vectors": 8}, {"score_tile": 3, "score_blocks": 1},
        {"tile": 2, "blocks": 2}, {"copy_values": False}, {"copy_values": True},
    ]  # fmt: skip
    data = tensors((2,), 23, 45, 2 * V + 1)
    cases = {str(p): attention(*data, **p) for p in choices}
    q, keys, v = data
    for copy in (False, True):
        cases["keys", copy] = attention(q, np.ascontiguousarray(keys), v, copy_keys=copy)
    agree(cases, TOLERANCE)


def test_steps_behind_the_softmax_and_the_product() -> None:
    q, keys, v = tensors((2,), 9, 21, 8)
    double = Epilogue((Step("multiply", (("value", 0), ("const", 2.0))),))
    residual = oracles.residual_epilogue(Operand((8,), "float32"), (2, 9, 8))
    case, plain = attention(q, keys, v)
    operands = oracles.operands_of(replace(case.workload, epilogue=residual))
    both = workload(q, keys, v, between=double, last=residual)
    want = np.maximum(2 * plain + sum(operands), 0)
    agree({"": (replace(case, workload=both, operands=operands), want)}, TOLERANCE)


def test_threads_do_not_change_the_result() -> None:
    same_on_any_threads([attention(*tensors((3,), 50, 33, 8), chunks=2)[0]])


def test_refusals() -> None:
    algorithm, w = algorithms()["attention"], workload(*tensors((2,), 9, 21, 8))
    softmax = w.producer
    inner = softmax.producer

    def reason(**fields: Any) -> str:
        return algorithm.supports(replace(w, **fields), HOST).reason

    assert "packed is True" in reason(packed=True)
    assert "a log_softmax" in reason(producer=replace(softmax, kind="log_softmax"))
    assert "float16" in reason(dtype="float16")
    halves = replace(softmax, rows=9, columns=42)
    assert "a softmax over 42 elements of rows of 21" in reason(producer=halves)
    step = Epilogue(
        (Step("multiply", (("value", 0), ("operand", 0))),), (Operand((21,), "float32"),)
    )
    assert "steps with operands" in reason(producer=replace(softmax, epilogue=step))
    turned = StridedView.contiguous((2, 21, 9)).permute((0, 2, 1))
    assert "another order" in reason(lhs=turned)
    assert "another order" in reason(producer=replace(softmax, producer=replace(inner, out=turned)))
    assert "read as (2, 3, 21)" in reason(
        lhs=StridedView.contiguous((2, 3, 21)), out=StridedView.contiguous((2, 3, 8))
    )
    columns = StridedView.contiguous((2, 8, 9)).permute((0, 2, 1))
    assert reason(out=columns) == "the result's last stride is 9; only 1"


def test_only_attention_takes_the_chain() -> None:
    w = workload(*tensors((2,), 9, 21, 8))
    assert list(algorithms(w)) == ["attention"]
    assert not any(a.supports(w.producer, HOST) for a in algorithms(w.producer).values())
    assert "attention" not in algorithms(replace(w, producer=None))


def test_plans_round_trip_and_bad_parameters_are_refused() -> None:
    algorithm, w = algorithms()["attention"], workload(*tensors((2,), 9, 21, 8))
    params = algorithm.default(w, HOST)
    plan = Plan(
        HOST.name, [LayerPlan("attention0", ["matmul"], algorithm="attention", params=params)]
    )
    assert Plan.from_yaml(plan.to_yaml()).layers[0].params == params
    for name, value in [("rows", 10), ("chunks", 0), ("vectors", 3), ("copy_keys", False)]:
        problem = algorithm.check(w, {**params, name: value}, HOST)
        assert problem.startswith(f"attention.{name} = {value} is not one of")


def test_one_kernel_costs_less_than_three() -> None:
    known = algorithms()

    def seconds(name: str, w: Any) -> float:
        return known[name].cost(w, known[name].default(w, HOST), HOST)

    for tokens, size in [(128, 32), (256, 64)]:
        w = workload(*tensors((12,), tokens, tokens, size))
        alone = replace(w.producer, producer=None)
        three = (
            seconds("batch_matmul", w.producer.producer)
            + seconds("normalize", alone)
            + seconds("batch_matmul", replace(w, producer=None))
        )
        assert 0.5 * three < seconds("attention", w) < three


@pytest.mark.parametrize(("target", "fma"), [(AVX512, "zmm"), (AVX2, "ymm"), (NEON, "fmla\tv")])
def test_other_targets_use_their_vectors(target: Any, fma: str) -> None:
    w = workload(*tensors((2,), 64, 50, 32))
    lines = fma_lines(assembly("attention", w, target))
    assert any(fma in line for line in lines)
