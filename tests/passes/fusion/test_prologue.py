"""Steps before a convolution: what they are read as, and when they are fused."""

import numpy as np
import pytest
from tvm import relax
from tvm.relax import op

import tvm_ext
from tests.passes.relax_models import array, const, module, run
from tvm_ext.layers import layers
from tvm_ext.passes import UniversalFusion
from tvm_ext.passes import dataflow as df
from tvm_ext.passes.fusion.kernel_form import kernel_form
from tvm_ext.passes.fusion.kernel_parts import NoKernel
from tvm_ext.pipeline import graph_pipeline

SHAPE = (1, 64, 14, 14)
SCALE, SHIFT = array(0, 1, 64, 1, 1), array(1, 64, 1, 1)
W1 = array(2, 32, 64, 1, 1) / 8


def _steps(emit, x):
    y = emit(op.add(emit(op.multiply(x, const(SCALE))), const(SHIFT)))
    return emit(op.nn.relu(y))


def _form(body, **shapes):
    pairs = df.bindings(module(shapes or {"x": SHAPE}, body)["main"])
    return kernel_form([(v, e) for v, e in pairs if df.op_name(e)])


def _ops(mod, profile=lambda one, parts: True):
    fused = UniversalFusion(profile)(mod)
    return [layer.ops for layer in layers(fused)]


def test_the_steps_are_read_from_one_tensor_and_constants():
    form = _form(lambda emit, x: op.nn.conv2d(_steps(emit, x), const(W1)))
    prologue = form.prologue
    assert prologue is not None
    assert prologue.source.name == "x"
    assert [step.op for step in prologue.steps.steps] == ["multiply", "add", "relu"]
    assert [operand.shape for operand in prologue.steps.operands] == [(1, 64, 1, 1)] * 2
    np.testing.assert_array_equal(df.value_of(prologue.constants[1]), SHIFT)


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        (lambda emit, x: op.add(x, const(array(0, 1, 1, 14, 1))), "more than each channel"),
        (lambda emit, x: op.nn.softmax(x), "kernels of their own"),
        (lambda emit, x: op.astype(emit(op.astype(x, "float16")), "float32"), "is float16"),
        (
            lambda emit, x: op.tanh(emit(op.exp(emit(op.sigmoid(x))))),
            "too many transcendental functions",
        ),
    ],
)
def test_other_steps_are_refused(steps, reason):
    with pytest.raises(NoKernel, match=reason):
        _form(lambda emit, x: op.nn.conv2d(emit(steps(emit, x)), const(W1)))


def test_two_tensors_are_refused():
    with pytest.raises(NoKernel, match="two tensors"):
        _form(lambda emit, x, y: op.nn.conv2d(emit(op.add(x, y)), const(W1)), x=SHAPE, y=SHAPE)


def test_steps_go_to_the_convolution_before_them():
    def body(emit, x):
        y = emit(op.nn.conv2d(x, const(array(3, 64, 64, 1, 1))))
        return op.nn.conv2d(_steps(emit, y), const(W1))

    steps = ("multiply", "add", "nn.relu")
    assert _ops(module({"x": SHAPE}, body)) == [("nn.conv2d", *steps), ("nn.conv2d",)]


@pytest.mark.parametrize("pays", [True, False])
def test_the_profile_decides_between_a_prologue_and_a_pass_of_its_own(pays):
    def body(emit, x):
        return op.nn.relu(emit(op.nn.conv2d(_steps(emit, x), const(W1))))

    groups = _ops(module({"x": SHAPE}, body), lambda one, parts: pays)
    steps = ("multiply", "add", "nn.relu")
    assert groups == (
        [(*steps, "nn.conv2d", "nn.relu")] if pays else [steps, ("nn.conv2d", "nn.relu")]
    )


def test_build_fuses_what_pays_and_is_right():
    """Before a 1x1 convolution it does, before a 3x3 one (which Winograd takes) it doesn't."""

    def body(emit, x):
        y = emit(op.nn.conv2d(_steps(emit, x), const(W1)))
        z = emit(op.concat([x, y], 1))
        steps = emit(op.nn.relu(emit(op.multiply(z, const(array(4, 1, 96, 1, 1))))))
        w = array(5, 64, 96, 3, 3) / 30
        return op.nn.conv2d(steps, const(w.astype("float32")), padding=1)

    mod = module({"x": SHAPE}, body)
    exe = tvm_ext.build(mod)
    groups = [tuple(layer.ops) for layer in exe.plan]
    assert ("multiply", "add", "nn.relu", "nn.conv2d") in groups
    assert ("multiply", "nn.relu") in groups
    x = array(6, *SHAPE)
    expected = run(mod, x)
    np.testing.assert_allclose(exe(x), expected, atol=1e-3 * np.abs(expected).max())


def test_padding_stays_zero():
    def body(emit, x):
        shifted = emit(op.add(x, const(SHIFT)))
        return op.nn.conv2d(shifted, const(array(2, 32, 64, 3, 3) / 24), padding=1, strides=2)

    mod = module({"x": SHAPE}, body)
    fused = graph_pipeline(UniversalFusion(lambda one, parts: True))(mod)
    (layer,) = layers(fused)
    assert layer.workload.prologue is not None
    x = array(6, *SHAPE)
    expected = run(mod, x)
    np.testing.assert_allclose(tvm_ext.build(mod)(x), expected, atol=1e-4 * np.abs(expected).max())
    assert isinstance(layer.inputs[0], relax.Var)


def test_local_response_normalization_is_one_kernel():
    def number(value):
        return relax.const(value, "float32")

    def body(emit, x):
        rows = emit(op.reshape(x, (1, 1, 64, 196)))
        square = emit(op.multiply(rows, rows))
        mean = emit(op.nn.avg_pool2d(square, (5, 1), (1, 1), (2, 0, 2, 0), count_include_pad=True))
        base = emit(op.add(emit(op.multiply(mean, number(0.1))), number(1.0)))
        quotient = emit(op.divide(rows, emit(op.power(base, number(0.75)))))
        return op.reshape(quotient, SHAPE)

    exe = tvm_ext.build(module({"x": SHAPE}, body))
    steps = ("multiply", "nn.avg_pool2d", "multiply", "add", "power", "divide")
    assert steps in [tuple(layer.ops) for layer in exe.plan]
    x = array(6, *SHAPE).astype("float64")
    padded = np.pad(np.square(x), ((0, 0), (2, 2), (0, 0), (0, 0)))
    mean = sum(padded[:, i : i + 64] for i in range(5)) / 5
    np.testing.assert_allclose(exe(x.astype("float32")), x / (1 + 0.1 * mean) ** 0.75, rtol=1e-5)


def test_a_pool_takes_no_constants_before_it():
    def body(emit, x):
        return op.nn.avg_pool2d(emit(op.multiply(x, const(SHIFT))), (3, 3))

    with pytest.raises(NoKernel, match="no constants for the steps before it"):
        _form(body)


def test_a_pool_of_another_layout_takes_no_steps_before_it():
    def body(emit, x):
        return op.nn.avg_pool2d(emit(op.multiply(x, x)), (3, 3), layout="NHWC")

    assert _ops(module({"x": (1, 8, 8, 4)}, body)) == [("multiply",), ("nn.avg_pool2d",)]
