"""What the planner decides, and that it says why."""

import numpy as np
import pytest
from passes.relax_models import array, const, module
from tvm import relax

import tvm_ext
from tvm_ext import planner
from tvm_ext.errors import PlanError
from tvm_ext.layers import layers
from tvm_ext.pipeline import graph_pipeline
from tvm_ext.plan_check import check_plan
from tvm_ext.target import resolve

AVX512 = resolve("llvm -mcpu=skylake-avx512")
AVX2 = resolve("llvm -mcpu=core-avx2")
NEON = resolve("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72")


def _layers(body, **inputs):
    return layers(graph_pipeline()(module(inputs, body)))


def _network(emit, x):
    y = emit(relax.op.nn.relu(emit(relax.op.nn.conv2d(x, const(array(0, 64, 3, 7, 7)), 2, 3))))
    y = emit(relax.op.nn.max_pool2d(y, pool_size=3, strides=2, padding=1))
    z = emit(relax.op.nn.conv2d(y, const(array(1, 64, 64, 3, 3)), padding=1))
    y = emit(relax.op.nn.relu(emit(relax.op.add(z, y))))
    y = emit(relax.op.nn.avg_pool2d(y, pool_size=14, strides=14))
    y = emit(relax.op.reshape(y, (1, 64)))
    return relax.op.matmul(y, const(array(2, 64, 10)))


@pytest.mark.parametrize(
    ("target", "layout"), [(AVX512, "NCHW16c"), (AVX2, "NCHW8c"), (NEON, "NCHW4c")]
)
def test_block_follows_the_vector_width(target, layout):
    found = _layers(_network, x=(1, 3, 56, 56))
    plan = planner.choose(found, target)
    convs = [layer for layer in plan if layer.ops[0] == "nn.conv2d"]
    assert [layer.layout[1] for layer in convs] == [layout, layout]
    assert convs[1].layout == [layout, layout]
    assert plan[found[1].name].layout == [layout, layout]


@pytest.mark.parametrize(("rank", "layout"), [(5, "NCHW"), (4, "NCHW4c")])
def test_what_only_views_read_is_stored_in_the_order_of_the_model(rank, layout):
    """A reshape of blocks would convert the squares, which their kernel makes planes of."""

    def body(emit, x):
        y = emit(relax.op.nn.conv2d(x, const(array(0, 64, 64, 3, 3)), padding=1))
        squares = emit(relax.op.multiply(y, y))
        if rank == 5:
            channels = emit(relax.op.reshape(squares, (1, 1, 64, 28, 28)))
            sums = emit(relax.op.nn.avg_pool3d(channels, (5, 1, 1), padding=(2, 0, 0)))
            sums = emit(relax.op.reshape(sums, (1, 64, 28, 28)))
        else:
            sums = emit(relax.op.nn.avg_pool2d(squares, (3, 3), padding=(1, 1)))
        return relax.op.add(y, sums)

    plan = planner.choose(_layers(body, x=(1, 64, 28, 28)), NEON)
    (squares,) = (entry for entry in plan if entry.ops[0] == "multiply")
    assert squares.layout == ["NCHW4c", layout]
    assert plan["conv2d_0"].layout[1] == "NCHW4c"


def test_the_parts_of_a_concatenation_are_stored_alike():
    """The grouped convolution's is the model's order; the pool has both at hand, and follows."""

    def body(emit, x):
        y = emit(relax.op.nn.conv2d(x, const(array(0, 64, 64, 3, 3)), padding=1))
        z = emit(relax.op.nn.conv2d(y, const(array(1, 48, 8, 1, 1)), groups=8))
        pooled = emit(relax.op.nn.max_pool2d(y, (3, 3), padding=(1, 1)))
        return relax.op.concat([z, pooled], 1)

    plan = planner.choose(_layers(body, x=(1, 64, 28, 28)), NEON)
    layouts = {entry.ops[0]: entry.layout for entry in plan}
    assert plan["conv2d_0"].layout[1] == "NCHW4c"
    assert layouts["nn.max_pool2d"] == layouts["concat"] == ["NCHW", "NCHW"]


def test_what_reads_a_measured_schedule_is_chosen_anew():
    """Together both convolutions would be in blocks; the schedule's result is planes."""

    def body(emit, x):
        y = emit(relax.op.nn.conv2d(x, const(array(0, 64, 64, 3, 3)), padding=1))
        return emit(relax.op.nn.conv2d(y, const(array(1, 64, 64, 3, 3)), strides=(2, 2)))

    found = _layers(body, x=(1, 64, 28, 28))
    offer = planner.Offer({}, 1e-6)

    def plan(offers=planner.no_offers):
        return planner.choose(found, NEON, offers).layers

    *_, last = plan()
    assert last.layout[0] == "NCHW4c"
    first = next(layer for layer in found if layer.ops[0] == "nn.conv2d")
    *_, last = chosen = plan(lambda layer, limit: offer if layer is first else "")
    assert chosen[0].algorithm == "tuned" and chosen[0].layout[1] == "NCHW"
    assert last.algorithm == "spatial_pack" and last.layout == ["NCHW", "NCHW4c"]


def test_a_part_of_a_model_may_have_its_inputs_in_any_layout():
    """A depthwise convolution alone stays in planes; between others it would be in blocks."""

    def body(emit, x):
        return emit(relax.op.nn.conv2d(x, const(array(0, 64, 1, 3, 3)), padding=1, groups=64))

    found = _layers(body, x=(1, 64, 14, 14))
    (whole,) = planner.choose(found, NEON)
    (part,) = planner.choose(found, NEON, is_part=True)
    assert (whole.algorithm, whole.layout) == ("depthwise_planes", ["NCHW", "NCHW"])
    assert (part.algorithm, part.layout) == ("depthwise", ["NCHW4c", "NCHW4c"])


def test_every_other_algorithm_has_a_reason():
    found = _layers(_network, x=(1, 3, 56, 56))
    plan = planner.choose(found, AVX2)
    first, second = (layer for layer in plan if layer.ops[0] == "nn.conv2d")
    assert "kernel (7, 7); only (3, 3)" in first.rejected["winograd_2x2"]
    assert second.algorithm not in second.rejected
    assert all(second.rejected.values())
    assert {"spatial_pack", "winograd_2x2", "winograd_4x4"} <= {second.algorithm, *second.rejected}


def test_winograd_states_its_tolerance():
    def body(emit, x):
        return relax.op.nn.conv2d(x, const(array(1, 128, 128, 3, 3)), padding=1)

    # Not the host's: how fast that is, is measured, and other programs slow it down.
    (layer,) = planner.choose(_layers(body, x=(1, 128, 28, 28)), NEON)
    assert layer.algorithm == "winograd_4x4"
    assert layer.tolerance == 1e-3


def test_fallback_is_visible():
    def body(emit, x):
        return relax.op.cumsum(x, axis=1)

    (layer,) = planner.choose(_layers(body, x=(2, 5)), AVX2)
    assert layer.algorithm == "generic"
    assert "cumsum" in layer.fallback


def test_unknown_algorithm_parameter_and_layout_are_named():
    found = _layers(_network, x=(1, 3, 56, 56))

    def fresh():
        plan = planner.choose(found, AVX2)
        return plan, next(x for x in plan if x.algorithm == "spatial_pack")

    plan, layer = fresh()
    layer.algorithm = "magic"
    with pytest.raises(PlanError, match=rf"{layer.name}.*'magic'; allowed: .*spatial_pack"):
        check_plan(plan, found, AVX2)
    plan, layer = fresh()
    layer.params["tile"] = 99
    with pytest.raises(PlanError, match=rf"{layer.name}: spatial_pack.tile = 99"):
        check_plan(plan, found, AVX2)
    plan, layer = fresh()
    layer.layout = ["NCHW", "NCHW"]
    with pytest.raises(PlanError, match=rf"{layer.name}: layout"):
        check_plan(plan, found, AVX2)
    plan, layer = fresh()
    plan.layers.remove(layer)
    with pytest.raises(PlanError, match=f"no entry for layer '{layer.name}'"):
        check_plan(plan, found, AVX2)


def test_a_users_algorithm_gives_the_same_answer():
    mod = module({"x": (1, 16, 12, 12)}, lambda emit, x: relax.op.nn.conv2d(
        x, const(array(1, 16, 16, 3, 3)), padding=1))  # fmt: skip
    x = array(3, 1, 16, 12, 12)
    default = tvm_ext.plan(mod)
    expected = tvm_ext.build(mod, plan=default)(x)
    (layer,) = default.layers
    layer.algorithm, layer.params, layer.source = "generic", {}, "user"
    layer.layout = ["NCHW", "NCHW"]
    actual = tvm_ext.build(mod, plan=default)(x)
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)
