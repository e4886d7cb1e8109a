"""ONNX Runtime's own quantised operators against ONNX Runtime."""

import numpy as np
import pytest
import tvm
from onnx import helper, numpy_helper
from tvm import relax

from benchmarks.integer_session import integer_session
from tvm_ext.errors import ModelError
from tvm_ext.frontend import load_model

MICROSOFT = "com.microsoft"
INT8 = {
    "int8": (np.int8(-7), np.int8(12), np.int8(3)),
    "uint8": (np.uint8(121), np.uint8(140), np.uint8(131)),
}


def model_of(op, data, constants, **attributes):
    """A model of one operator; inputs by position."""
    count = max([*data, *constants]) + 1
    names = [f"i{i}" if i in data or i in constants else "" for i in range(count)]
    dtype = helper.np_dtype_to_tensor_dtype(next(iter(data.values())).dtype)
    floats = op == "QGemm" and 7 not in constants
    graph = helper.make_graph(
        [helper.make_node(op, names, ["y"], domain=MICROSOFT, **attributes)],
        op,
        [helper.make_tensor_value_info(names[i], dtype, x.shape) for i, x in data.items()],
        [helper.make_tensor_value_info("y", 1 if floats else dtype, None)],
        [numpy_helper.from_array(np.asarray(x), names[i]) for i, x in constants.items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def both(model, data):
    """Our results and ONNX Runtime's."""
    feeds = {f"i{i}": x for i, x in data.items()}
    machine = relax.VirtualMachine(tvm.compile(load_model(model), target="llvm"), tvm.cpu())
    ours = machine["main"](*[tvm.runtime.tensor(x) for x in feeds.values()]).numpy()
    return ours, integer_session(model).run(None, feeds)[0]


def random(dtype, *shape):
    limits = np.iinfo(dtype)
    return np.random.default_rng(1).integers(limits.min, limits.max + 1, shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
@pytest.mark.parametrize("scales", [(0.031, 0.047, 0.11), (0.25, 0.5, 0.5)])
def test_sums_and_products(dtype, op, scales):
    za, zb, zy = INT8[dtype]
    sa, sb, sy = map(np.float32, scales)
    a, b = random(dtype, 1, 5, 16, 16), random(dtype, 1, 5, 16, 16)[:, ::-1].copy()
    data, rest = {0: a, 3: b}, {1: sa, 2: za, 4: sb, 5: zb, 6: sy, 7: zy}
    ours, theirs = both(model_of(op, data, rest), data)
    # ONNX Runtime fuses each product with its sum: next to ties, rounding falls the other way.
    assert np.abs(ours.astype(int) - theirs).max() <= 1
    assert np.mean(ours != theirs) < (0.005 if scales[0] != 0.25 else 1e-9)


@pytest.mark.parametrize("trans_b", [0, 1])
@pytest.mark.parametrize("floats", [False, True])
def test_qgemm(trans_b, floats):
    rng = np.random.default_rng(0)
    # Halves: without VNNI, ONNX Runtime adds two products in 16 bits, saturated.
    a, w = random("uint8", 3, 20), random("int8", *((6, 20) if trans_b else (20, 6))) // 2
    constants = {
        1: np.float32(0.02), 2: np.uint8(120), 3: w,
        4: rng.uniform(0.001, 0.01, 6).astype("float32"), 5: np.zeros(6, "int8"),
        6: rng.integers(-999, 999, 6).astype("int32"),
    }  # fmt: skip
    if not floats:
        constants |= {7: np.float32(0.05), 8: np.uint8(100)}
    ours, theirs = both(model_of("QGemm", {0: a}, constants, transB=trans_b), {0: a})
    if floats:
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    else:
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("QLinearGlobalAveragePool", {"channels_last": 0}),
        ("QLinearAveragePool", {"kernel_shape": [2, 3], "strides": [2, 1]}),
        ("QLinearLeakyRelu", {"alpha": 0.07}),
        ("QLinearSigmoid", {}),
    ],
)
def test_one_input(dtype, op, attributes):
    zx, _, zy = INT8[dtype]
    sy = np.float32(1 / 256 if op == "QLinearSigmoid" else 0.017)
    x = random(dtype, 1, 5, 8, 9)
    constants = {1: np.float32(0.023), 2: zx, 3: sy, 4: zy}
    ours, theirs = both(model_of(op, {0: x}, constants, **attributes), {0: x})
    # ONNX Runtime sums and rounds in another order.
    assert np.abs(ours.astype(int) - theirs).max() <= 1
    assert np.mean(ours != theirs) < 0.02


def test_concatenation():
    za, zb, zy = INT8["uint8"]
    a, b = random("uint8", 1, 2, 5, 5), random("uint8", 1, 3, 5, 5)
    constants = {
        0: np.float32(0.05),
        1: zy,
        3: np.float32(0.04),
        4: za,
        6: np.float32(0.031),
        7: zb,
    }
    data = {2: a, 5: b}
    ours, theirs = both(model_of("QLinearConcat", data, constants, axis=1), data)
    np.testing.assert_array_equal(ours, theirs)


def test_channels_last_is_refused():
    x = random("int8", 1, 5, 4, 4)
    constants = {1: np.float32(1), 2: np.int8(0), 3: np.float32(1), 4: np.int8(0)}
    model = model_of("QLinearGlobalAveragePool", {0: x}, constants, channels_last=1)
    with pytest.raises(ModelError, match="channels_last is 1; allowed: 0"):
        load_model(model)
