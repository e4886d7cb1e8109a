"""The pictures hold what the runs and sweeps hold: positions and heights read back."""

from __future__ import annotations

import io

import numpy as np
import pytest
from matplotlib.collections import PathCollection, PolyCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from tests.codegen.streams import read, relu, run, shape, write
from tests.codegen.sweep_networks import conv_network
from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.isa import Unit
from tvm_ext.codegen.plots import gantt, pareto, roofline, stacked_bars
from tvm_ext.codegen.plots.drawing import kind_colour
from tvm_ext.codegen.program import Layer
from tvm_ext.codegen.simulator import Result
from tvm_ext.codegen.sweep import Failure, Row, Sweep
from tvm_ext.codegen.time_network import time_network
from tvm_ext.errors import OptionError


def pipeline() -> Result:
    """Two loads, two relus, two stores, worked by hand in docs/simulator.md."""
    stream = [
        read(0, 320, push_next=True),
        read(320, 320, push_next=True),
        *shape(1, 5, 64),
        relu(0, 640, pop_prev=True, push_next=True),
        relu(320, 960, pop_prev=True, push_next=True),
        write(640, 320, 1024, pop_prev=True),
        write(960, 320, 1344, pop_prev=True),
    ]
    layers = (Layer("first", "CONV"), Layer("second", "POOL"))
    tags = (0, 1, *[0] * 7, 0, 1, 0, 1, -1)
    result, _ = run(*stream, layers=layers, tags=tags)
    assert isinstance(result, Result)
    return result


def bars(figure: Figure, lane: float) -> list[tuple[float, float, tuple[float, ...]]]:
    """(begin, end, colour) of the bars of a lane."""
    found = []
    for collection in figure.axes[0].collections:
        if not isinstance(collection, PolyCollection):
            continue
        for path, colour in zip(
            collection.get_paths(), np.resize(collection.get_facecolor(), (99, 4)), strict=False
        ):
            (left, low), (right, high) = path.get_extents().get_points()
            if low < lane < high:
                found.append((float(left), float(right), tuple(map(float, colour))))
    return found


def drawn(figure: Figure) -> None:
    """Render it: warnings of missing glyphs or layouts are errors here."""
    figure.savefig(io.BytesIO(), format="png")
    figure.savefig(io.BytesIO(), format="svg")


def test_gantt_has_the_events() -> None:
    figure = gantt(pipeline())
    first, second = to_rgba(kind_colour("CONV")), to_rgba(kind_colour("POOL"))
    assert bars(figure, Unit.LOAD) == [(0, 84, first), (84, 168, second)]
    # Seven OP_SETs of a cycle each are one bar.
    assert bars(figure, Unit.COMPUTE) == [(0, 7, first), (84, 97, first), (168, 181, second)]
    assert bars(figure, Unit.STORE) == [(97, 188, first), (188, 272, second)]
    # The band of layers has no gap within a layer.
    assert [bar[:2] for bar in bars(figure, -0.85)] == [(0, 97), (168, 181)]
    labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert labels == ["layer", "load, busy 62%", "compute, busy 12%", "store, busy 62%"]
    drawn(figure)


def test_gantt_of_a_part() -> None:
    figure = gantt(pipeline(), first=90, last=170)
    assert [bar[:2] for bar in bars(figure, Unit.LOAD)] == [(90, 168)]
    assert [bar[:2] for bar in bars(figure, Unit.COMPUTE)] == [(90, 97), (168, 170)]
    assert figure.axes[0].get_xlim() == (90, 170)
    for first, last in ((-1, 5), (5, 5), (272, None)):
        with pytest.raises(OptionError, match="a part of 0 to 272, the whole run"):
            gantt(pipeline(), first, last)


def test_gantt_of_a_long_run_joins_what_cannot_be_seen() -> None:
    result = time_network(
        conv_network(channels=8, filters=64, size=40, kernel=3), Accelerator(sram_bytes=8192)
    )
    figure = gantt(result)
    loads = int((result.events.unit == Unit.LOAD).sum())
    assert 1 < len(bars(figure, Unit.LOAD)) <= loads
    assert bars(figure, Unit.COMPUTE)[-1][1] <= result.cycles * 1e-3
    drawn(figure)


def test_roofline_has_a_point_a_layer() -> None:
    result = time_network(
        conv_network(channels=8, filters=70, size=12), Accelerator(double_buffering=False)
    )
    figure = roofline(result)
    (points,) = (c for c in figure.axes[0].collections if isinstance(c, PathCollection))
    macs, moved = 144 * 8 * 70, 8 * 70 + 8 * 70 + 144 * 8 + 144 * 70
    np.testing.assert_allclose(points.get_offsets(), [[macs / moved, macs / result.cycles]])
    (roof,) = figure.axes[0].lines
    x, y = roof.get_data()
    np.testing.assert_allclose(y, np.minimum(64, 16 * np.asarray(x)))
    drawn(figure)


def test_roofline_without_products() -> None:
    drawn(roofline(pipeline()))


def made(sram: int, pes: int, kinds: dict[str, int], energy: float = 1e6, **options: object) -> Row:
    hardware = Accelerator(sram_bytes=sram, pes=pes, **options)  # type: ignore[arg-type]
    return Row(hardware, "auto", sum(kinds.values()), kinds, 100, 0, 0, energy, 1, 1)


SWEEP = Sweep(
    (
        made(2**19, 64, {"POOL": 100, "CONV": 7000, "DEPTH": 900}, 3e6),
        Failure(Accelerator(sram_bytes=1024), "auto", "LoweringError", "layer a: $too_big$"),
        made(2**20, 128, {"CONV": 4000, "DEPTH": 500, "WAVELET": 50}, 2e6, parallel="input"),
        made(2**20, 128, {"CONV": 4000, "DEPTH": 9000}, 2.5e6, depthwise="software"),
    )
)


def test_stacked_bars_have_the_cycles() -> None:
    figure = SWEEP.plot()
    (axes,) = figure.axes
    heights: dict[float, dict[tuple[float, ...], float]] = {}
    for bar in axes.patches:
        assert isinstance(bar, Rectangle)
        place = round(bar.get_x() + bar.get_width() / 2, 6)
        colour = tuple(bar.get_facecolor())
        heights.setdefault(place, {})[colour] = bar.get_height()
    # The failure has no bar; the one with software is behind those with hardware.
    order = {0: SWEEP.rows[0], 2: SWEEP.rows[1], 3: SWEEP.rows[2]}
    assert heights.keys() == order.keys()
    for place, row in order.items():
        assert heights[place] == {
            tuple(to_rgba(kind_colour(kind))): pytest.approx(cycles * 1e-3)
            for kind, cycles in row.cycles_by_kind.items()
        }
    labels = [text.get_text() for text in axes.get_xticklabels()]
    assert labels == ["512 KiB\n64 O", "1 KiB\n64 O", "1 MiB\n128 I", "1 MiB\n128 O"]
    shown = {text.get_text().strip() for text in axes.texts}
    assert shown == {
        "LoweringError", "depthwise\nhardware", "depthwise\nsoftware", "8", "4.55", "13",
    }  # fmt: skip
    assert axes.get_ylabel() == "thousand cycles"
    legend = axes.get_legend()
    assert legend is not None
    assert [t.get_text() for t in legend.get_texts()] == ["CONV", "DEPTH", "POOL", "WAVELET"]
    drawn(figure)


def test_labels_say_what_else_varies() -> None:
    found = Sweep(
        tuple(made(2**19, 64, {"CONV": 5}, dma_bytes_per_cycle=width) for width in (8, 16))
    )
    labels = [text.get_text() for text in stacked_bars(found).axes[0].get_xticklabels()]
    assert labels == [f"512 KiB\n64 O\ndma_bytes_per_cycle\n{width}" for width in (8, 16)]
    # One group has no name.
    assert {text.get_text() for text in stacked_bars(found).axes[0].texts} == {"5"}


def test_pareto_labels_the_front() -> None:
    figure = pareto(SWEEP)
    (axes,) = figure.axes
    places = [tuple(c.get_offsets()[0]) for c in axes.collections]
    np.testing.assert_allclose(places, [(8.0, 3.0), (4.55, 2.0), (13.0, 2.5)])
    # The last is slower than the second, with more energy and as much SRAM.
    assert [text.get_text() for text in axes.texts] == ["1 MiB 128 I", "512 KiB 64 O"]
    assert axes.get_title("left").startswith("2 of 3 points are on the front")
    drawn(figure)


@pytest.mark.parametrize("draw", [stacked_bars, pareto])
def test_nothing_to_draw(draw: object) -> None:
    for empty in (Sweep(()), Sweep(SWEEP.failures)):
        drawn(draw(empty))  # type: ignore[operator]


def test_totals_are_short() -> None:
    for cycles, unit, total in (
        (999, "cycles", "999"), (9180, "thousand cycles", "9.18"),
        (123_456, "thousand cycles", "123"), (7_891_000_000, "million cycles", "7,891"),
    ):  # fmt: skip
        (axes,) = stacked_bars(Sweep((made(2**19, 64, {"CONV": cycles}),))).axes
        assert axes.get_ylabel() == unit
        assert [text.get_text() for text in axes.texts] == [total]


def test_far_apart_values_are_on_logarithmic_axes() -> None:
    found = Sweep((made(2**10, 64, {"CONV": 10}), made(2**20, 64, {"CONV": 10**7})))
    axes = pareto(found).axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "linear")
