"""Operators and values of KeepReducedDims."""

import numpy as np
import pytest
from relax_models import array, const, module, ops, run
from tvm import relax

import tvm_ext
from tvm_ext.passes import KeepReducedDims


def _mean(shape, axes, keepdims):
    return module({"x": shape}, lambda emit, x: emit(relax.op.mean(x, axes, keepdims)))


@pytest.mark.parametrize(
    ("shape", "axes"), [((2, 5, 3, 4), [2, 3]), ((2, 5, 3, 4), [-1, 2]), ((1, 3, 7), [2])]
)
def test_a_global_average_keeps_its_dimensions(shape, axes):
    new = KeepReducedDims()(_mean(shape, axes, False))
    assert ops(new) == ["mean", "reshape"]
    x = array(0, *shape)
    want = x.astype("f8").mean(tuple(range(2, len(shape))))
    got = run(new, x)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("axes", "keepdims"), [([2, 3], True), ([1, 2], False), ([3], False), (None, False)]
)
def test_other_means_stay(axes, keepdims):
    assert ops(KeepReducedDims()(_mean((2, 5, 3, 4), axes, keepdims))) == ["mean"]


def test_a_head_behind_such_a_mean_is_one_kernel_of_ours():
    weight = const(array(1, 5, 3))

    def body(emit, x):
        return relax.op.matmul(emit(relax.op.mean(x, [2, 3])), weight)

    executable = tvm_ext.build(module({"x": (2, 5, 3, 4)}, body))
    assert [layer.algorithm for layer in executable.plan] == ["row_chain"]
    x = array(0, 2, 5, 3, 4)
    want = x.astype("f8").mean((2, 3)) @ array(1, 5, 3).astype("f8")
    np.testing.assert_allclose(executable(x), want, rtol=1e-4, atol=1e-5)
