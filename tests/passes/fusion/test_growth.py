"""How groups grow: what is left alone, why, and in what time."""

import time

import numpy as np
import tvm
from tvm import relax

from tests.passes.relax_models import array, const, module, run
from tvm_ext.layers import layers
from tvm_ext.passes import UniversalFusion
from tvm_ext.passes.fusion.mapping_type import MappingType

W1, W2 = array(0, 4, 4, 3, 3), array(1, 4, 4, 1, 1)
BIAS = array(2, 1, 4, 1, 1)
SHAPE = (1, 4, 6, 6)


def _groups(body, **inputs):
    return [layer.ops for layer in layers(UniversalFusion()(module(inputs, body)))]


def _conv(emit, x, w=W1):
    pad = 1 if w is W1 else 0
    return emit(relax.op.nn.conv2d(x, const(w), padding=pad))


def test_dynamic_batch_is_left_as_it_is():
    n = tvm.tirx.Var("n", "int64")
    x = relax.Var("x", relax.TensorType((n, 8), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit(relax.op.nn.relu(x))
            out = builder.emit_output(builder.emit(relax.op.add(y, const(array(0, 8)))))
        builder.emit_func_output(out)
    mod = UniversalFusion()(builder.get())
    data = array(1, 3, 8)
    np.testing.assert_allclose(run(mod, data), np.maximum(data, 0) + array(0, 8), rtol=1e-6)


def test_works_within_a_sequence_of_passes():
    def body(emit, x):
        y = emit(relax.op.nn.relu(x))
        return relax.op.permute_dims(emit(relax.op.multiply(y, x)), (1, 0))

    sequence = tvm.transform.Sequential([relax.transform.CanonicalizeBindings(), UniversalFusion()])
    data = array(0, 3, 4)
    expected = (np.maximum(data, 0) * data).T
    np.testing.assert_allclose(
        run(sequence(module({"x": (3, 4)}, body)), data), expected, rtol=1e-6
    )


def test_variables_may_have_the_names_of_groups():
    def body(emit, x):
        y = emit(relax.op.nn.softmax(x), "softmax_0")
        return relax.op.nn.softmax(emit(relax.op.mean(y, 0), "softmax_2"))

    assert _groups(body, x=(3, 4)) == [("nn.softmax",), ("mean",), ("nn.softmax",)]


def test_refusals_say_why():
    fusion = UniversalFusion()
    fusion(module({"x": SHAPE}, lambda emit, x: _conv(emit, _conv(emit, x), W2)))
    (refusal,) = fusion.refusals
    assert refusal.types == (MappingType.MANY_TO_MANY, MappingType.MANY_TO_MANY)
    assert refusal.reason == "Many-to-Many before Many-to-Many is never fused"
    fusion(module({"x": SHAPE}, lambda emit, x: _conv(emit, emit(relax.op.nn.relu(x)))))
    assert fusion.refusals[0].reason == "one kernel would be slower"
    fusion(module({"x": SHAPE}, lambda emit, x: relax.op.nn.softmax(emit(relax.op.nn.relu(x)))))
    assert fusion.refusals[0].reason == "its kernel computes nothing before it"


def test_planning_time_grows_linearly():
    """Of 2,000 operators: eight times the graph takes less than twice eight times as long."""

    def seconds(layers):
        def body(emit, x):
            first = x
            for i in range(layers):
                y = emit(relax.op.add(_conv(emit, x, W2), const(BIAS)))
                # A connection from the start of the graph to its end, every now and then.
                x = emit(relax.op.add(emit(relax.op.nn.relu(y)), first if i % 9 == 0 else y))
            return x

        mod = module({"x": SHAPE}, body)
        start = time.perf_counter()
        UniversalFusion()(mod)
        return time.perf_counter() - start

    seconds(10)
    small, large = min(seconds(60) for _ in range(2)), seconds(480)
    assert large < 16 * small


def test_a_pool_right_behind_its_convolution_is_left_to_it():
    """Though the pool has the smaller result, and so would be the earlier seed."""

    def body(emit, x):
        return relax.op.nn.max_pool2d(_conv(emit, x), (2, 2), (2, 2))

    for faster, expected in (
        (True, [("nn.conv2d", "nn.max_pool2d")]),
        (False, [("nn.conv2d",), ("nn.max_pool2d",)]),
    ):
        fusion = UniversalFusion(lambda *_, answer=faster: answer)
        ops = [layer.ops for layer in layers(fusion(module({"x": (1, 4, 6, 6)}, body)))]
        assert ops == expected
