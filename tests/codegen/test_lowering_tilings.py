"""Each kind of tiling gives the same result, and the one that is chosen is fast."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from tests.codegen.lowering_networks import Builder, run_program
from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.lowering import NestPlan, emit_plan, make_plan
from tvm_ext.codegen.lowering.choose import assign, nest_cycles
from tvm_ext.codegen.lowering.cost import Candidates, estimate
from tvm_ext.codegen.lowering.footprint import footprint
from tvm_ext.codegen.lowering.nest import Span, Tiling, spans, window_span
from tvm_ext.codegen.lowering.plan import NetworkPlan
from tvm_ext.codegen.lowering.sram import pack
from tvm_ext.codegen.network import Network


def one_conv(seed: int, channels: int, filters: int, **options: object) -> Network:
    builder = Builder(np.random.default_rng(seed))
    x = builder.input(1, channels, 7, 6)
    return builder.network(builder.conv(x, filters, (3, 3), pads=(1, 1, 1, 1), **options))


def with_tiling(plan: NetworkPlan, tiling: Tiling) -> NetworkPlan | None:
    """The plan of one nest with another tiling, None if it doesn't fit the SRAM."""
    (item,) = plan.items
    assert isinstance(item, NestPlan)
    sizes = footprint(item.nest, tiling, item.residency)
    addresses = pack(sizes.sizes, ((0, plan.accelerator.sram_bytes),))
    if addresses is None:
        return None
    buffers = assign(sizes, addresses)
    cycles = nest_cycles(
        plan.accelerator, item.nest, item.recipe, item.residency, tiling, buffers, {}
    )
    return replace(plan, items=(replace(item, tiling=tiling, buffers=buffers, cycles=cycles),))


def all_tilings(plan: NetworkPlan, most_tiles: int) -> list[Tiling]:
    """Every size of every tile, both loop orders, two buffers or all for weights."""
    (item,) = plan.items
    assert isinstance(item, NestPlan)
    height, width, filters = item.nest.output.shape
    found = []
    for rows, columns, channels, depth in product(
        range(1, height + 1), range(1, width + 1), range(1, filters + 1),
        range(1, item.nest.depth + 1),
    ):  # fmt: skip
        cuts = [
            len(spans(*pair))
            for pair in (
                (height, rows), (width, columns), (filters, channels), (item.nest.depth, depth),
            )
        ]  # fmt: skip
        space, blobs = cuts[0] * cuts[1], cuts[2] * cuts[3]
        if space * blobs > most_tiles:
            continue
        inputs = space * (cuts[3] if item.nest.reduction else cuts[2])
        for outer, kept in product((False, True), {min(2, blobs), blobs}):
            found.append(
                Tiling(
                    rows, columns, channels, depth, outer, min(2, inputs), kept,
                    min(2, space * cuts[2]),
                )
            )  # fmt: skip
    return found


@pytest.mark.parametrize("outer", [False, True])
@pytest.mark.parametrize("depth", [3, 7])
@pytest.mark.parametrize("channels", [4, 9])
@pytest.mark.parametrize(("rows", "columns"), [(7, 6), (3, 6), (2, 4), (1, 2)])
def test_every_cut_gives_the_same_result(
    rows: int, columns: int, channels: int, depth: int, outer: bool
) -> None:
    hardware = Accelerator(pes=4, sram_bytes=4096)
    network = one_conv(0, 7, 9)
    plan = make_plan(network, hardware)
    for slots in (1, 2):
        made = with_tiling(plan, Tiling(rows, columns, channels, depth, outer, *(slots,) * 3))
        assert made is not None
        run_program(network, emit_plan(made), hardware)


@pytest.mark.parametrize("parallel", ["output", "input"])
@pytest.mark.parametrize(("channels", "filters", "sram_bytes"), [(4, 6, 700), (8, 3, 1000)])
def test_no_tiling_of_a_small_layer_is_more_than_one_percent_faster(
    channels: int, filters: int, sram_bytes: int, parallel: str
) -> None:
    hardware = Accelerator(pes=4, sram_bytes=sram_bytes, parallel=parallel, dma_bytes_per_cycle=4)
    plan = make_plan(one_conv(1, channels, filters), hardware)
    (chosen,) = plan.items
    assert isinstance(chosen, NestPlan)
    fitting = [with_tiling(plan, tiling) for tiling in all_tilings(plan, 12)]
    cycles = [made.items[0].cycles for made in fitting if made is not None]  # type: ignore[union-attr]
    assert len(cycles) > 50
    assert chosen.cycles <= 1.01 * min(cycles)


def test_estimates_are_near_the_exact_cycles() -> None:
    """Within 30 % with overlap, within 10 % without. (The planner's last word is exact.)"""
    plan = make_plan(one_conv(2, 8, 12), Accelerator(pes=4, sram_bytes=8192))
    (item,) = plan.items
    assert isinstance(item, NestPlan)
    tilings = all_tilings(plan, 24)[::61]
    columns = Candidates(
        *(np.array([getattr(t, n) for t in tilings]) for n in Tiling.__dataclass_fields__)
    )
    for hardware, low, high in (
        (plan.accelerator, 0.7, 1.3),
        (replace(plan.accelerator, double_buffering=False), 0.9, 1.1),
    ):
        base = replace(plan, accelerator=hardware)
        guesses, _ = estimate(
            hardware, item.nest, item.residency, columns, hardware.double_buffering
        )
        for tiling, guess in zip(tilings, guesses, strict=True):
            made = with_tiling(base, tiling)
            assert made is not None
            exact = made.items[0].cycles  # type: ignore[union-attr]
            assert low * exact <= guess <= high * exact, tiling


def test_input_rows_of_a_tile() -> None:
    """By hand: 7 rows, window 3, stride 2, padding 1; result rows 1 and 2 begin at rows 1 and 3."""
    network = one_conv(3, 2, 2, strides=(2, 2))
    (item,) = make_plan(network, Accelerator(sram_bytes=4096)).items
    assert isinstance(item, NestPlan)
    assert window_span(item.nest, 0, Span(1, 2)) == (Span(1, 5), 0)
    assert window_span(item.nest, 0, Span(0, 1)) == (Span(0, 2), 1)
    assert window_span(item.nest, 0, Span(3, 1)) == (Span(5, 2), 0)
    assert [(s.start, s.count) for s in spans(7, 3)] == [(0, 3), (3, 3), (6, 1)]
