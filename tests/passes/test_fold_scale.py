"""FoldScale and SimplifyBatchNorm against float64 numpy."""

import numpy as np
import pytest
import tvm
from relax_models import array, const, module, ops, run
from tvm import relax

from tvm_ext.passes import FoldScale, MergeAffine, SimplifyBatchNorm

PIPELINE = tvm.transform.Sequential([SimplifyBatchNorm(), MergeAffine(), FoldScale()])


def _conv1x1(x: np.ndarray, w: np.ndarray, groups: int) -> np.ndarray:
    n, c, *spatial = x.shape
    k = w.shape[0]
    xs = x.reshape(n, groups, c // groups, *spatial).astype("f8")
    ws = w.reshape(groups, k // groups, c // groups).astype("f8")
    return np.einsum("gkc,ngc...->ngk...", ws, xs).reshape(n, k, *spatial)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("bias", [False, True])
def test_batch_norm_folds_into_convolution(groups, bias):
    w, b = array(0, 6, 4 // groups, 1, 1), array(1, 1, 6, 1, 1)
    gamma, beta, mean = array(2, 6), array(3, 6), array(4, 6)
    variance = np.abs(array(5, 6)) + 0.1

    def body(emit, x):
        y = emit(relax.op.nn.conv2d(x, const(w), groups=groups))
        if bias:
            y = emit(relax.op.add(y, const(b)))
        norm = emit(
            relax.op.nn.batch_norm(
                y, const(gamma), const(beta), const(mean), const(variance), axis=1, epsilon=1e-3,
                training=False,
            )
        )  # fmt: skip
        return relax.TupleGetItem(norm, 0)

    new = PIPELINE(module({"x": (2, 4, 3, 3)}, body))
    assert ops(new) == ["nn.conv2d", "add"]
    x = array(9, 2, 4, 3, 3)
    y = _conv1x1(x, w, groups) + (b if bias else 0)
    scale = (gamma / np.sqrt(variance.astype("f8") + 1e-3)).reshape(1, 6, 1, 1)
    expected = (y - mean.reshape(1, 6, 1, 1)) * scale + beta.reshape(1, 6, 1, 1)
    np.testing.assert_allclose(run(new, x), expected, rtol=2e-5, atol=2e-5)


def test_matmul_columns_are_scaled():
    w, s, t = array(0, 5, 7), array(1, 7), array(2, 1, 7)

    def body(emit, x):
        y = emit(relax.op.matmul(x, const(w)))
        return relax.op.add(emit(relax.op.multiply(y, const(s))), const(t))

    new = PIPELINE(module({"x": (3, 5)}, body))
    assert ops(new) == ["matmul", "add"]
    x = array(9, 3, 5)
    np.testing.assert_allclose(run(new, x), x.astype("f8") @ w * s + t, rtol=1e-5, atol=1e-5)


def test_scale_that_varies_over_positions_stays():
    w, s = array(0, 6, 4, 1, 1), array(1, 1, 1, 3, 3)

    def body(emit, x):
        return relax.op.multiply(emit(relax.op.nn.conv2d(x, const(w))), const(s))

    assert ops(PIPELINE(module({"x": (1, 4, 3, 3)}, body))) == ["nn.conv2d", "multiply"]


def test_convolution_with_two_readers_is_not_scaled():
    w, s = array(0, 6, 4, 1, 1), array(1, 1, 6, 1, 1)

    def body(emit, x):
        y = emit(relax.op.nn.conv2d(x, const(w)))
        return relax.op.add(y, emit(relax.op.multiply(y, const(s))))

    new = PIPELINE(module({"x": (1, 4, 3, 3)}, body))
    assert ops(new) == ["nn.conv2d", "multiply", "add"]
    x = array(9, 1, 4, 3, 3)
    y = _conv1x1(x, w, 1)
    np.testing.assert_allclose(run(new, x), y + y * s, rtol=1e-5, atol=1e-5)


def test_weights_that_cannot_hold_the_scale_stay():
    def body(emit, x):
        w = np.full((4, 2), 7, "int8")
        y = emit(relax.op.matmul(x, const(w), out_dtype="int32"))
        return relax.op.multiply(y, const(np.array(100, "int32")))

    new = PIPELINE(module({"x": (3, 4)}, body, "int8"))
    x = np.arange(12, dtype="int8").reshape(3, 4)
    np.testing.assert_array_equal(run(new, x), x.sum(1, keepdims=True) * np.full((1, 2), 700))


def test_half_weights_that_overflow_stay():
    def body(emit, x):
        w = np.full((4, 2), 2, "float16")
        y = emit(relax.op.matmul(x, const(w), out_dtype="float32"))
        return relax.op.multiply(y, const(np.array(1e5, "float32")))

    new = PIPELINE(module({"x": (3, 4)}, body, "float16"))
    x = np.ones((3, 4), "float16")
    np.testing.assert_allclose(run(new, x), np.full((3, 2), 8e5), rtol=1e-6)
