"""Memory and layout decisions of lowering, seen in the program and in the values."""

import numpy as np
import tvm
from passes.relax_models import array, const, module, run
from tvm import relax

import tvm_ext
from tests import models
from tvm_ext import planner
from tvm_ext.layers import layers
from tvm_ext.pipeline import graph_pipeline
from tvm_ext.schedules import algorithms
from tvm_ext.schedules.layout import layout_name
from tvm_ext.target import resolve


def _blocked(mod):
    """The model's plan with every convolution and concatenation channel-blocked."""
    target = resolve()
    found = layers(graph_pipeline()(mod))
    plan = planner.choose(found, target)
    for layer, entry in zip(found, plan, strict=True):
        name = {"nn.conv2d": "spatial_pack", "concat": "concat", "image.resize2d": "resize"}.get(
            entry.ops[0]
        )
        if name:
            entry.algorithm = name
            entry.params = algorithms()[name].default(layer.workload, target)
            entry.layout = [layout_name(4, target.lanes)] * 2
    return plan


def _check(mod, *inputs, rtol=1e-4, plan=None):
    executable = tvm_ext.build(mod, plan=plan)
    actual = executable(list(inputs))
    expected = run(mod, *inputs)
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=rtol * np.abs(expected).max())
    return executable


def _conv(emit, x, out, seed, kernel=1):
    channels = int(x.ty.shape[1])
    w = array(seed, out, channels, kernel, kernel) / np.sqrt(channels * kernel)
    return emit(relax.op.nn.conv2d(x, const(w.astype("float32")), padding=kernel // 2))


def test_concatenation_of_whole_blocks_is_free():
    def body(emit, x):
        y = _conv(emit, x, 32, 0)
        z = emit(relax.op.concat([y, _conv(emit, y, 64, 1, 3), _conv(emit, y, 16, 2)], axis=1))
        return _conv(emit, z, 16, 3)

    mod = module({"x": (1, 16, 9, 9)}, body)
    executable = _check(mod, array(5, 1, 16, 9, 9), plan=_blocked(mod))
    assert not [c for c in executable.program.calls if "concat" in c.kernel]


def test_nested_concatenations_share_one_buffer():
    def body(emit, x):
        for i in range(3):
            x = emit(relax.op.concat([x, _conv(emit, x, 16, i, 3)], axis=1))
        return _conv(emit, x, 8, 9)

    def start(emit, x):
        return body(emit, _conv(emit, x, 16, 10))

    mod = module({"x": (1, 16, 6, 6)}, start)
    executable = _check(mod, array(5, 1, 16, 6, 6), plan=_blocked(mod))
    assert not [c for c in executable.program.calls if "concat" in c.kernel]


def test_concatenation_that_splits_blocks_is_copied():
    def body(emit, x):
        y = _conv(emit, x, 12, 0)
        z = emit(relax.op.concat([y, _conv(emit, y, 20, 1, 3)], axis=1))
        return _conv(emit, z, 16, 3)

    _check(module({"x": (2, 16, 7, 7)}, body), array(5, 2, 16, 7, 7))


def _copies(executable):
    """For each call that puts parts together, the shapes of the parts."""
    program = executable.program
    return [
        [program.buffers[number].shape for number in call.args[:-1]]
        for call in program.calls
        if "concat" in call.kernel
    ]


def test_reshaped_results_are_computed_inside_a_concatenation():
    def body(emit, x):
        made = [emit(relax.op.matmul(x, const(array(i, 16, 16)))) for i in range(2)]
        rows = [emit(relax.op.reshape(y, (1, 2, 32))) for y in made]
        return emit(relax.op.nn.softmax(emit(relax.op.concat(rows, axis=1))))

    assert _copies(_check(module({"x": (4, 16)}, body), array(5, 4, 16))) == []


def test_only_the_part_that_lies_elsewhere_is_copied():
    """y is inside the first concatenation, x is the caller's."""

    def body(emit, x):
        y, z = _conv(emit, x, 16, 0), _conv(emit, x, 32, 1)
        first = emit(relax.op.concat([y, z], axis=1))
        second = emit(relax.op.concat([_conv(emit, first, 16, 2), y], axis=1))
        third = emit(relax.op.concat([x, _conv(emit, second, 32, 3)], axis=1))
        return relax.Tuple([first, second, third])

    mod = module({"x": (1, 16, 8, 8)}, body)
    x = array(5, 1, 16, 8, 8)
    executable = tvm_ext.build(mod, plan=_blocked(mod))
    lanes = resolve().lanes
    # The input is brought into blocks by a kernel, which writes it in its place.
    assert _copies(executable) == [[(1, 16 // lanes, 8, 8, lanes)]]
    reference = relax.VirtualMachine(tvm.compile(mod, target="llvm"), tvm.cpu())["main"]
    for ours, theirs in zip(executable(x), reference(tvm.runtime.tensor(x)), strict=True):
        np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-4, atol=1e-4)


def test_an_input_is_copied_to_its_place_between_products():
    def body(emit, x):
        y = emit(relax.op.matmul(x, const(array(1, 16, 16))))
        return emit(relax.op.nn.softmax(emit(relax.op.concat([y, x], axis=0))))

    assert _copies(_check(module({"x": (4, 16)}, body), array(5, 4, 16))) == [[(4, 16)]]


def test_a_part_is_converted_into_its_place():
    def body(emit, x):
        parts = [_conv(emit, x, 16, i) for i in range(2)]
        return emit(relax.op.nn.softmax(emit(relax.op.concat(parts, axis=1))))

    mod = module({"x": (1, 16, 8, 8)}, body)
    plan = _blocked(mod)
    joint = next(entry for entry in plan if entry.ops[0] == "concat")
    joint.layout = [layout_name(4, 0)] * 2
    executable = _check(mod, array(5, 1, 16, 8, 8), plan=plan)
    assert _copies(executable) == []
    converted = [c.layer for c in executable.program.calls if "layout_transform" in c.kernel]
    assert [name.split(":")[0] for name in converted].count(joint.name) == 2


def test_single_positions_of_padded_blocks_begin_with_the_channels():
    """24 channels leave half a block of 16 empty; a view of the others needs no conversion."""

    def body(emit, x):
        pooled = emit(relax.op.nn.avg_pool2d(x, (6, 6), strides=(6, 6)))
        return emit(relax.op.nn.softmax(emit(relax.op.reshape(pooled, (2, 12)))))

    mod = module({"x": (1, 24, 6, 6)}, body)
    plan = tvm_ext.plan(mod)
    (pool,) = (entry for entry in plan if entry.ops[0] == "nn.avg_pool2d")
    pool.layout = [layout_name(4, resolve().lanes)] * 2
    executable = _check(mod, array(0, 1, 24, 6, 6), plan=plan)
    moved = [c.layer for c in executable.program.calls if c.kernel.startswith("layout_transform")]
    # Of the model's input alone.
    assert len(moved) == 1 and moved[0].startswith(pool.name)


def test_output_that_is_an_input_or_used_twice():
    def body(emit, x):
        y = _conv(emit, x, 16, 0)
        return relax.Tuple([y, emit(relax.op.nn.relu(y)), x])

    mod = module({"x": (1, 16, 5, 5)}, body)
    x = array(5, 1, 16, 5, 5)
    y, r, same = tvm_ext.build(mod)(x)
    np.testing.assert_array_equal(same, x)
    np.testing.assert_array_equal(r, np.maximum(y, 0))


def test_odd_channels_keep_infinities_in_their_own_channels():
    """Lanes past the last channel must not leak into real ones (infinity times zero is NaN)."""
    w1 = np.zeros((5, 3, 1, 1), "float32")
    w1[0, 0] = 1
    w2 = np.ones((4, 5, 1, 1), "float32")

    def body(emit, x):
        y = emit(relax.op.nn.conv2d(x, const(w1)))
        return relax.op.nn.conv2d(y, const(w2))

    x = np.zeros((1, 3, 4, 4), "float32")
    x[0, 0, 0, 0] = np.inf
    mod = module({"x": x.shape}, body)
    y = tvm_ext.build(mod, plan=_blocked(mod))(x)
    assert np.isinf(y[0, :, 0, 0]).all() or np.isnan(y[0, :, 0, 0]).all()
    assert (y[0, :, 1:, 1:] == 0).all()


def test_split_gives_a_tuple_whose_parts_are_layers_inputs():
    def body(emit, x):
        parts = emit(relax.op.split(x, 2, axis=1))
        a, b = (emit(relax.TupleGetItem(parts, i)) for i in range(2))
        return relax.op.multiply(a, emit(relax.op.sigmoid(b)))

    _check(module({"x": (2, 6, 5)}, body), array(5, 2, 6, 5))


def test_outputs_that_are_known_before_running():
    x = array(0, 2, 3)
    nodes = [
        ("Shape", ["x"], {}), ("Size", ["x"], {}), ("Range", ["zero", "five", "two"], {}),
        ("Relu", ["x"], {}),
    ]  # fmt: skip
    weights = {"zero": np.int64(0), "five": np.int64(5), "two": np.int64(2)}
    model = models.operators(nodes, {"x": x}, weights)
    for ours, theirs in zip(tvm_ext.build(model)(x), models.oracle(model, {"x": x}), strict=True):
        assert ours.shape == theirs.shape
        np.testing.assert_array_equal(ours, theirs)


def test_operators_that_ask_for_a_shape():
    x, index = array(0, 3, 4), np.array([[0, -1], [2, 0], [1, 1]])
    nodes = [
        ("GatherElements", ["x", "index"], {"axis": 1}),
        ("GatherND", ["x", "index"], {}),
        ("ScatterND", ["x", "index", "update"], {}),
    ]
    model = models.operators(nodes, {"x": x}, {"index": index, "update": array(1, 3)})
    for ours, theirs in zip(tvm_ext.build(model)(x), models.oracle(model, {"x": x}), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def _plan_algorithms(executable):
    return [layer.algorithm for layer in executable.plan]


def test_slices_of_whole_runs_are_views():
    def body(emit, x):
        x = _conv(emit, x, 32, 1)
        parts = emit(relax.op.split(x, 2, 1))
        first, second = (emit(relax.TupleGetItem(parts, i)) for i in (0, 1))
        return emit(relax.op.add(emit(relax.op.nn.relu(second)), first))

    mod = module({"x": (1, 16, 6, 6)}, body)
    executable = _check(mod, array(0, 1, 16, 6, 6))
    called = [call.layer for call in executable.program.calls]
    assert not [name for name in called if name.startswith("strided_slice")]


def test_slices_with_gaps_between_rows_are_copied():
    def body(emit, x):
        parts = emit(relax.op.split(x, 2, 1))
        first, second = (emit(relax.TupleGetItem(parts, i)) for i in (0, 1))
        sums = emit(relax.op.nn.softmax(first)), emit(relax.op.nn.softmax(second))
        return emit(relax.op.add(*sums))

    mod = module({"x": (6, 32)}, body)
    executable = _check(mod, array(0, 6, 32))
    assert _plan_algorithms(executable).count("slice") == 2
    called = [call.layer for call in executable.program.calls]
    assert [name for name in called if name.startswith("strided_slice")]


def test_products_read_slices_with_gaps_in_place():
    def body(emit, x):
        parts = emit(relax.op.split(x, 2, 1))
        first, second = (emit(relax.TupleGetItem(parts, i)) for i in (0, 1))
        return emit(relax.op.matmul(first, emit(relax.op.permute_dims(second))))

    mod = module({"x": (6, 32)}, body)
    executable = _check(mod, array(0, 6, 32))
    assert [call.layer for call in executable.program.calls] == ["matmul_0"]


def test_a_product_stores_its_result_where_the_transposition_would():
    def body(emit, x, y):
        heads = emit(relax.op.permute_dims(emit(relax.op.matmul(x, y)), (1, 0, 2)))
        return emit(relax.op.nn.relu(emit(relax.op.reshape(heads, (5, 24)))))

    mod = module({"x": (3, 5, 4), "y": (3, 4, 8)}, body)
    executable = _check(mod, array(0, 3, 5, 4), array(1, 3, 4, 8))
    assert [call.layer for call in executable.program.calls] == ["matmul_0"]


def test_a_constant_that_is_read_in_another_order_is_stored_flat():
    def body(emit, x):
        table = emit(relax.op.permute_dims(emit(relax.op.nn.relu(x)), (1, 0, 2)))
        return emit(relax.op.add(table, const(array(1, 5, 3, 4))))

    mod = module({"x": (3, 5, 4)}, body)
    executable = _check(mod, array(0, 3, 5, 4))
    assert [call.layer for call in executable.program.calls] == ["relu_0"]


def test_enlarging_stays_in_blocks_between_convolutions():
    def body(emit, x):
        x = _conv(emit, x, 32, 1)
        x = emit(relax.op.image.resize2d(
            x, relax.ShapeExpr((12, 12)), layout="NCHW", method="nearest_neighbor",
            coordinate_transformation_mode="asymmetric", rounding_method="floor"))  # fmt: skip
        y = _conv(emit, x, 32, 2)
        return relax.op.add(y, x)  # another reader, so that the resize stays a layer

    mod = module({"x": (1, 16, 6, 6)}, body)
    executable = _check(mod, array(0, 1, 16, 6, 6), plan=_blocked(mod))
    converted = [c.layer for c in executable.program.calls if "layout_transform" in c.kernel]
    assert [name.split(":")[0] for name in converted] == ["conv2d_0", "output"]


def test_weights_that_layers_share_are_stored_once():
    """As a recurrent cell's, in each of its steps."""
    weights = const(array(0, 64, 64))

    def body(emit, x):
        for _ in range(6):
            x = emit(relax.op.tanh(emit(relax.op.matmul(x, weights))))
        return x

    exe = tvm_ext.build(module({"x": (1, 64)}, body))
    assert exe.program.constant_bytes < 2 * 64 * 64 * 4
    data, expected = array(1, 1, 64), array(1, 1, 64).astype("float64")
    for _ in range(6):
        expected = np.tanh(expected @ array(0, 64, 64).astype("float64"))
    np.testing.assert_allclose(exe(data), expected, rtol=0, atol=1e-5)
