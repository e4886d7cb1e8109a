"""Tensors that share bytes, and those that are moved."""

from __future__ import annotations

import numpy as np
import pytest

from tests.codegen.lowering_networks import Builder, run_network
from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.lowering import MovePlan, NestPlan
from tvm_ext.codegen.lowering.views import place_tensors
from tvm_ext.codegen.network_elementwise import Multiply, Relu

HARDWARE = Accelerator(pes=8, sram_bytes=8192)


@pytest.fixture
def builder() -> Builder:
    return Builder(np.random.default_rng(0))


def test_concatenated_results_are_written_where_they_belong(builder: Builder) -> None:
    x = builder.input(1, 4, 5, 6)
    left = builder.elementwise(Relu, x)
    right = builder.pool(x, "max", (1, 1))
    y = builder.concat(left, right, left)
    network = builder.network(y)
    placement = place_tensors(network)
    assert placement.views[left].storage == placement.views[right].storage == y
    assert (placement.views[right].offset, placement.views[right].pixel_pitch) == (4, 12)
    plan, _ = run_network(network, HARDWARE)
    # What comes twice is copied once; the other two parts cost nothing.
    kinds = [item.nest.kind for item in plan.items if isinstance(item, NestPlan)]
    assert kinds == ["ELEMENTWISE", "POOL", "MOVE"]


def test_concatenated_inputs_are_copied(builder: Builder) -> None:
    x, z = builder.input(1, 3, 4, 4), builder.input(1, 5, 4, 4)
    builder.tensors[z] = builder.tensors[x].__class__(
        z, (1, 5, 4, 4), "int8", builder.tensors[x].scale, builder.tensors[x].zero_point
    )
    network = builder.network(builder.concat(x, z))
    plan, _ = run_network(network, HARDWARE)
    assert [i.nest.kind for i in plan.items if isinstance(i, NestPlan)] == ["MOVE", "MOVE"]


def test_interleaved_results_are_written_where_they_belong(builder: Builder) -> None:
    x = builder.input(1, 4, 5, 6)
    left, right = builder.pool(x, "max", (1, 1)), builder.pool(x, "max", (1, 1))
    y = builder.interleave((1, 2), left, right)
    network = builder.network(y)
    view = place_tensors(network).views[right]
    assert (view.storage, view.offset, view.pixel_pitch, view.row_pitch) == (y, 4, 8, 48)
    plan, _ = run_network(network, HARDWARE)
    assert [i.nest.kind for i in plan.items if isinstance(i, NestPlan)] == ["POOL", "POOL"]


def test_repeated_pixels_are_copied(builder: Builder) -> None:
    x = builder.elementwise(Relu, builder.input(1, 4, 5, 6))
    plan, _ = run_network(builder.network(builder.interleave((2, 1), x, x)), HARDWARE)
    kinds = [item.nest.kind for item in plan.items if isinstance(item, NestPlan)]
    assert kinds == ["ELEMENTWISE", "MOVE", "MOVE"]


@pytest.mark.parametrize("sram_bytes", [200, 8192])
@pytest.mark.parametrize("first", [False, True])
def test_one_value_a_channel_is_loaded_once(builder: Builder, first: bool, sram_bytes: int) -> None:
    x, gate = builder.input(1, 5, 6, 7), builder.input(1, 5, 1, 1)
    operands = (gate, x) if first else (x, gate)
    network = builder.network(builder.elementwise(Multiply, *operands))
    hardware = Accelerator(pes=8, sram_bytes=sram_bytes)
    _, result = run_network(network, hardware)
    # Both inputs and the result, nothing twice.
    assert result.dma_read_bytes == 5 * 6 * 7 + 5
    assert result.dma_write_bytes == 5 * 6 * 7


def test_flattening_permutes_weights_instead_of_values(builder: Builder) -> None:
    x = builder.conv(builder.input(1, 3, 4, 5), 6, (1, 1))
    flat = builder.reshape(x, 1, 120)
    network = builder.network(builder.matmul(flat, 7))
    assert place_tensors(network).permuted == {flat: (6, 4, 5)}
    plan, _ = run_network(network, HARDWARE)
    assert not [item for item in plan.items if isinstance(item, MovePlan)]


@pytest.mark.parametrize("sram_bytes", [100, 8192])
@pytest.mark.parametrize(
    ("before", "after"),
    [((1, 6, 4, 5), (1, 4, 5, 6)), ((1, 6, 4, 5), (1, 120)), ((1, 120), (1, 6, 4, 5))],
)
def test_other_reshapes_move(
    builder: Builder, before: tuple[int, ...], after: tuple[int, ...], sram_bytes: int
) -> None:
    x = builder.elementwise(Relu, builder.input(*before))
    network = builder.network(builder.elementwise(Relu, builder.reshape(x, *after)))
    plan, result = run_network(network, Accelerator(pes=8, sram_bytes=sram_bytes))
    assert [type(item) for item in plan.items] == [NestPlan, MovePlan, NestPlan]
    assert "MOVE" in {result.program.layers[tag].kind for tag in result.program.tags if tag >= 0}


def test_a_reshape_of_one_pixel_is_a_view(builder: Builder) -> None:
    x = builder.elementwise(Relu, builder.input(1, 12, 1, 1))
    network = builder.network(builder.elementwise(Relu, builder.reshape(x, 1, 12)))
    plan, _ = run_network(network, HARDWARE)
    assert [type(item) for item in plan.items] == [NestPlan, NestPlan]


def test_results_that_are_read_inside_are_stored_too(builder: Builder) -> None:
    x = builder.elementwise(Relu, builder.input(1, 4, 5, 5))
    y = builder.conv(x, 3, (3, 3))
    run_network(builder.network(x, y), HARDWARE)
    run_network(builder.network(y, x), Accelerator(pes=8, sram_bytes=300))
