"""The elementwise kernel against numpy."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.schedules.chains import binary, chain, floats
from tests.schedules.kernels import AVX512, HOST, NEON, Case, assembly, run, run_all
from tvm_ext.schedules.base import algorithms
from tvm_ext.schedules.epilogue import Epilogue, Operand, Step
from tvm_ext.schedules.strided_view import StridedView
from tvm_ext.schedules.workload import ElementwiseWorkload

V = HOST.lanes


def relu_of_sum(shape, other, dtype="float32"):
    steps = [
        Step("add", (("operand", 0), ("operand", 1)), dtype=dtype),
        Step("relu", (("value", 0),), dtype=dtype),
    ]
    return chain(shape, steps, [Operand(shape, dtype), Operand(other, dtype)], dtype)


def tanh_chain(length):
    steps = [Step("tanh", (("value", i - 1),) if i else (("operand", 0),)) for i in range(length)]
    return chain((9,), steps, [Operand((9,), "float32")])


@pytest.mark.parametrize("block", [0, V])
def test_broadcast(block):
    shapes = [
        ((2, 13, 7, 7), (1, 13, 1, 1)),
        ((2, 13, 7, 7), (2, 13, 7, 7)),
        ((2, 13, 7, 7), (1, 1, 7, 1)),
        ((2, 16, 5, 6), (1, 1, 1, 1)),
        ((3, 2, 2, 3), (1, 1, 1, 3)),
        ((1, 24, 30, 112), (1, 24, 1, 1)),
        ((1, 24, 30, 112), (1, 1, 30, 112)),
        ((128, 4), (1, 4)),
        ((2, 9, 11), (2, 1, 11)),
        ((2, 5, 3, 4, 5), (1, 5, 1, 4, 1)),
    ]
    cases, wanted = [], []
    for shape, other in shapes:
        x, y = floats(*shape), floats(*other, seed=1)
        for params in ({}, {"tasks": 8 * HOST.cores, "vectors": 8}, {"vectors": 1}):
            w = relu_of_sum(shape, other)
            cases.append(
                Case("elementwise", w, operands=[x, y], layout=(block, block), params=params)
            )
            wanted.append(np.maximum(x + y, 0))
    for case, got, want in zip(cases, run_all(cases), wanted, strict=True):
        np.testing.assert_array_equal(got, want, err_msg=str(case.workload.shape))


def test_sizes_around_every_tile():
    sizes = sorted({1, 2, 3, 5, *(m * V + d for m in (1, 2, 4, 8, 17, 33) for d in (-1, 0, 1))})
    shapes = [(n,) for n in sizes] + [(n, m) for n in (1, 2, 5, 9) for m in (3, V - 1, 4 * V + 1)]
    cases = []
    for shape in shapes:
        # The second operand forces two dimensions on the kernel where there are two.
        other = (1, *shape[1:]) if len(shape) > 1 else shape
        operands = [floats(*shape), floats(*other, seed=1)]
        cases.append(Case("elementwise", relu_of_sum(shape, other), operands=operands))
    for case, got in zip(cases, run_all(cases), strict=True):
        want = np.maximum(case.operands[0] + case.operands[1], 0)
        np.testing.assert_array_equal(got, want, err_msg=str(case.workload.shape))


def test_scalar_and_large_parallel():
    x = floats(3, 1000, 177)
    y = floats(1000, 1, seed=1).reshape(1, 1000, 1)
    w = relu_of_sum(x.shape, y.shape)
    default = algorithms()["elementwise"].default(w, HOST)
    assert default["tasks"] == (4 * HOST.cores if HOST.cores > 1 else 1)
    np.testing.assert_array_equal(run("elementwise", w, operands=[x, y]), np.maximum(x + y, 0))
    scalar = np.array(-2.0, "float32")
    got = run("elementwise", relu_of_sum((), ()), operands=[scalar, np.array(3.0, "float32")])
    assert got.shape == () and got == 1.0


def test_chain_of_functions():
    x = floats(9)
    want = np.tanh(np.tanh(np.tanh(x.astype("float64"))))
    got = run("elementwise", tanh_chain(3), operands=[x])
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_operands_in_another_order():
    """Transposed, part of a wider row, backwards: NumPy reads the same views."""
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(s).astype("float32") for s in ((5, 3, 11), (3, 5, 40)))
    views = (
        StridedView.contiguous((5, 3, 11)).permute((1, 0, 2)),
        StridedView.contiguous((3, 5, 40)).slice(2, 7, 11).slice(0, 2, 3, -1),
    )
    w = chain(
        (3, 5, 11),
        [Step("subtract", (("operand", 0), ("operand", 1)))],
        [Operand((3, 5, 11), "float32", v, a.size) for v, a in zip(views, (x, y), strict=True)],
    )
    expected = x.transpose(1, 0, 2) - y[::-1, :, 7:18]
    assert algorithms()["elementwise"].layouts(w, HOST) == ((0, 0),)
    case = Case("elementwise", w, operands=[x.reshape(-1), y.reshape(-1)])
    np.testing.assert_array_equal(run_all([case])[0], expected)


@pytest.mark.parametrize(
    ("workload", "reason"),
    [
        (relu_of_sum((0, 4), (0, 4)), "no elements"),
        (relu_of_sum((3, 4), (2, 4)), r"operand 1: shape \(2, 4\)"),
        (chain((4,), [Step("warp", (("operand", 0),))], [Operand((4,), "float32")]), "'warp'"),
        (ElementwiseWorkload((4,), "float32", Epilogue()), "epilogue.results is 1"),
        (tanh_chain(5), "5 functions like exp in a row; at most 4"),
    ],
)
def test_refusals(workload, reason):
    support = algorithms()["elementwise"].supports(workload, HOST)
    assert not support
    assert re.search(reason, support.reason)


def test_risky_operations_stay_plain_when_lanes_are_missing():
    layouts = algorithms()["elementwise"].layouts
    assert layouts(binary("divide", "float32", shape=(1, V + 1, 2)), HOST) == ((0, 0),)
    assert layouts(binary("divide", "float32", shape=(1, V, 2)), HOST) == ((0, 0), (V, V))
    assert layouts(binary("add", "int32", shape=(1, V, 2)), HOST) == ((0, 0),)


@pytest.mark.parametrize("key", ["vectors", "tasks"])
def test_parameters_out_of_space_are_refused(key):
    w = relu_of_sum((4, 100), (4, 100))
    algorithm = algorithms()["elementwise"]
    params = {**algorithm.default(w, HOST), key: 7}
    assert f"elementwise.{key} = 7 is not one of" in algorithm.check(w, params, HOST)


@pytest.mark.parametrize(("target", "register"), [(AVX512, "%zmm"), (NEON, ".4s")])
def test_assembly_uses_whole_vectors(target, register):
    v = target.lanes
    w = relu_of_sum((2, 2 * v + 3, 6, 5), (1, 2 * v + 3, 1, 1))
    for layout in algorithms()["elementwise"].layouts(w, target):
        assert register in assembly("elementwise", w, target, layout)
