"""Which operators count as elementwise, and the scalar step that each becomes."""

import numpy as np
import pytest
from relax_models import array, const, module
from tvm import relax

import tvm_ext
from tvm_ext.passes import elementwise
from tvm_ext.schedules.epilogue import SCALAR_OPS, Step


@pytest.mark.parametrize(("beta", "threshold"), [(1.0, 20.0), (2.0, 20.0), (1.0, 0.5)])
def test_softplus_with_any_beta_and_threshold(beta, threshold):
    x = 3 * array(0, 4, 5)
    mod = module({"x": (4, 5)}, lambda emit, x: relax.op.nn.softplus(x, beta, threshold))
    wide = x.astype("float64") * beta
    expected = np.where(wide > threshold, x, np.log1p(np.exp(wide)) / beta)
    np.testing.assert_allclose(tvm_ext.build(mod)(x), expected, rtol=1e-5, atol=1e-6)


def variable(*shape, dtype="float32"):
    return relax.Var("x", relax.TensorType(list(shape), dtype))


X, N, B = (variable(2, 3, 4, dtype=dtype) for dtype in ("float32", "int32", "bool"))


def bound(call):
    """A call with its type, as passes meet it."""
    builder = relax.BlockBuilder()
    with builder.function("main", [v for v in (X, N, B) if v in relax.analysis.free_vars(call)]):
        builder.emit_func_output(builder.emit(call))
    return builder.get()["main"].body.blocks[0].bindings[0].value


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (relax.op.add(X, X), "add"),
        (relax.op.nn.silu(X), "silu"),
        (relax.op.nn.gelu_tanh(X), "gelu_tanh"),
        (relax.op.less(X, X), "less"),
        (relax.op.where(B, X, X), "where"),
        (relax.op.astype(X, "bool"), "cast"),
        (relax.op.astype(N, "int8"), "cast"),
        # Not one element of the input for one of the output.
        (relax.op.sum(X), ""),
        (relax.op.nn.softmax(X), ""),
        (relax.op.reshape(X, (24,)), ""),
        # LLVM truncates where this asks for a comparison.
        (relax.op.astype(N, "bool"), ""),
        (X, ""),
        (relax.Tuple([X]), ""),
    ],
    ids=str,
)
def test_names_of_scalar_operations(call, name):
    assert elementwise.scalar_name(bound(call) if isinstance(call, relax.Call) else call) == name
    assert name in ("", *SCALAR_OPS)


def test_steps_carry_attributes_and_the_result_type():
    refs = [("value", 0)]
    clip = bound(relax.op.clip(X, -1.5, 2))
    assert elementwise.tensor_args(clip) == [X]
    assert elementwise.to_step(clip, refs) == Step("clip", (("value", 0),), (-1.5, 2.0))
    leaky = elementwise.to_step(bound(relax.op.nn.leakyrelu(X, 0.25)), refs)
    assert leaky == Step("leakyrelu", (("value", 0),), (0.25,))
    cast = elementwise.to_step(bound(relax.op.astype(X, "int8")), refs)
    assert cast == Step("cast", (("value", 0),), dtype="int8")


def test_operands_are_aligned_with_the_outputs_dimensions():
    bias, slope = const(array(0, 3, 1)), const(array(1, 3))
    add = bound(relax.op.add(X, bias))
    assert elementwise.aligned_shape(add, 0, 3) == (2, 3, 4)
    assert elementwise.aligned_shape(add, 1, 3) == (1, 3, 1)
    # A PRelu slope lies along its axis, not along the last.
    prelu = bound(relax.op.nn.prelu(X, slope, axis=1))
    assert elementwise.aligned_shape(prelu, 1, 3) == (1, 3, 1)


def test_clipping_64_bit_integers():
    mod = module({"x": (3,)}, lambda emit, x: relax.op.clip(x, -(2**40), 2**40), "int64")
    x = np.array([-(2**50), 2**35, 2**50])
    np.testing.assert_array_equal(tvm_ext.build(mod)(x), np.clip(x, -(2**40), 2**40))


def test_chain_in_bfloat16_is_left_to_tvm():
    def body(emit, x):
        y = emit(relax.op.exp(emit(relax.op.astype(x, "bfloat16"))))
        return relax.op.astype(y, "float32")

    exe = tvm_ext.build(module({"x": (2, 8)}, body))
    x = np.linspace(-1, 1, 16, dtype="float32").reshape(2, 8)
    assert [layer.algorithm for layer in exe.plan] == ["generic"] * 3
    np.testing.assert_allclose(exe(x), np.exp(x), rtol=2**-7)
