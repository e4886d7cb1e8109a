"""Batch norms as a multiply and an add, against NumPy in float64."""

import numpy as np
import pytest
from relax_models import array, const, module, ops, run
from tvm import relax

from tvm_ext.passes import SimplifyBatchNorm
from tvm_ext.passes import dataflow as df

GAMMA, BETA, MEAN = array(1, 5), array(2, 5), array(3, 5)
VARIANCE = np.abs(array(4, 5)) + 0.1


def norm(x, parameters=(GAMMA, BETA, MEAN, VARIANCE), axis=1, **attributes):
    attributes = {"epsilon": 1e-3, "training": False, **attributes}
    operands = [p if isinstance(p, relax.Expr) else const(p) for p in parameters]
    return relax.op.nn.batch_norm(x, *operands, axis=axis, **attributes)


def first(emit, call):
    return relax.TupleGetItem(emit(call), 0)


def reference(x, axis=1, gamma=GAMMA, beta=BETA, epsilon=1e-3):
    shape = [1] * x.ndim
    shape[axis] = -1
    g, b, m, v = (np.asarray(p, "float64").reshape(shape) for p in (gamma, beta, MEAN, VARIANCE))
    return (x - m) / np.sqrt(v + epsilon) * g + b


@pytest.mark.parametrize(
    ("shape", "axis"), [((2, 5), 1), ((2, 5, 4), 1), ((1, 5, 3, 3), 1), ((2, 3, 4, 5), 3)]
)
def test_any_rank_and_axis(shape, axis):
    new = SimplifyBatchNorm()(module({"x": shape}, lambda emit, x: first(emit, norm(x, axis=axis))))
    assert ops(new) == ["multiply", "add"]
    x = array(0, *shape)
    np.testing.assert_allclose(run(new, x), reference(x, axis), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("center", "scale"), [(False, True), (True, False), (False, False)])
def test_parameters_that_the_norm_does_not_use(center, scale):
    def body(emit, x):
        return first(emit, norm(x, center=center, scale=scale))

    new = SimplifyBatchNorm()(module({"x": (1, 5, 2, 2)}, body))
    x = array(0, 1, 5, 2, 2)
    gamma, beta = GAMMA if scale else np.ones(5), BETA if center else np.zeros(5)
    want = reference(x, gamma=gamma, beta=beta)
    np.testing.assert_allclose(run(new, x), want, rtol=1e-5, atol=1e-5)


def test_constants_are_combined_in_float64_and_rounded_once():
    """Also of a channel without variance, which leaves the epsilon."""
    mean, variance = 1000 + MEAN, np.where(np.arange(5) == 2, 0, VARIANCE).astype("float32")

    def body(emit, x):
        return first(emit, norm(x, (GAMMA, BETA, mean, variance), epsilon=1e-5))

    new = SimplifyBatchNorm()(module({"x": (1, 5)}, body))
    multiply, add = (e for _, e in df.bindings(new["main"]) if df.op_name(e))
    scale = GAMMA / np.sqrt(variance.astype("float64") + float(np.float32(1e-5)))
    shift = BETA - mean.astype("float64") * scale
    np.testing.assert_allclose(df.value_of(multiply.args[1])[0], scale, rtol=6e-8)
    np.testing.assert_allclose(df.value_of(add.args[1])[0], shift, rtol=6e-8)


def test_running_statistics_pass_through():
    new = SimplifyBatchNorm()(
        module({"x": (2, 5)}, lambda emit, x: relax.TupleGetItem(emit(norm(x)), 2))
    )
    np.testing.assert_array_equal(run(new, array(0, 2, 5)), VARIANCE)


def test_training_and_statistics_from_inputs_stay():
    training = module({"x": (2, 5)}, lambda emit, x: first(emit, norm(x, training=True)))
    assert ops(SimplifyBatchNorm()(training)) == ["nn.batch_norm"]

    def body(emit, x, mean):
        return first(emit, norm(x, (GAMMA, BETA, mean, VARIANCE)))

    given = module({"x": (2, 5), "mean": (5,)}, body)
    assert ops(SimplifyBatchNorm()(given)) == ["nn.batch_norm"]
