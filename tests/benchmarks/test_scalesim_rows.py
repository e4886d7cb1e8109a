"""Layers for SCALE-Sim, the terms of its cycles, and the tables, without running it."""

from dataclasses import replace

import pytest

from benchmarks.accelerator_networks import NetworkBuilder
from benchmarks.bench_scalesim import (
    CASES,
    Case,
    Totals,
    cells,
    check_trends,
    label,
    section,
    total_cells,
)
from benchmarks.scalesim_engine import Array, Report, Window
from benchmarks.scalesim_rows import check, folds, hardware, layers, measure, steady_cycles


@pytest.fixture(scope="module")
def network():
    builder = NetworkBuilder("n", (1, 3, 17, 17))
    x = builder.conv(builder.input, 8, 3, 2)
    x = builder.conv(x, 8, 3, depthwise=True)
    x = builder.conv(builder.conv(x, 8, 1), 8, 1)
    return builder.network(x)


def simulated(window: Window, array: Array) -> Report:
    """What SCALE-Sim's documentation says that it does."""
    times, extra = folds(window, array)
    return Report(steady_cycles(window, array) + times * extra, 1000, "0")


def test_layers(network):
    first, second = layers(network)
    assert first.window == Window(9, 9, (3, 3), 2, 3, 8)
    assert second.window == Window(9, 9, (1, 1), 1, 8, 8)
    assert (first.count, second.count) == (1, 2)
    assert label(first) == "9x9, 3x3/2, 3 to 8"
    assert [layer.name for layer in second.network.layers] == ["layer2"]


def test_folds():
    """SCALE-Sim 3.0.0's own numbers: see tests/codegen/test_isa_scalesim.py."""
    window = Window(4, 3, (3, 3), 2, 10, 9)
    for array, cycles in [
        (Array("os", 32, 32), 152), (Array("os", 4, 8), 600), (Array("ws", 48, 1), 1926),
    ]:  # fmt: skip
        assert simulated(window, array).cycles == cycles


@pytest.mark.parametrize("array", [Array("os", 4, 8), Array("ws", 8, 1)])
def test_rows(network, array):
    rows = [measure(layer, array, simulated) for layer in layers(network)]
    check(rows, array)
    row = rows[1]
    assert row.our_steady == row.their_steady == -(-81 // (4 if array.dataflow == "os" else 1)) * 8
    assert row.our_steady < row.computing < row.cycles
    # Input, weights with 8 bytes of bias and factor a filter, result.
    assert row.memory_bytes == 81 * 8 + 8 * (8 + 8) + 81 * 8
    assert len(cells(row)) == 11
    case = Case("title", lambda: network, array, in_full=True)
    assert len(total_cells(case, rows)) == 10
    assert Totals(rows).sum(lambda r: r.cycles) == rows[0].cycles + 2 * rows[1].cycles
    assert "### title" in section([(case, rows)])
    check_trends(case, rows)
    turned = [replace(rows[0], computing=rows[0].our_fill + 1), row]
    if rows[0].their_steady > row.their_steady:
        with pytest.raises(RuntimeError, match=r"rank correlation -1\.000 without fill"):
            check_trends(case, turned)


def test_what_the_terms_do_not_explain(network):
    array = Array("os", 4, 8)
    row = measure(layers(network)[1], array, simulated)
    one_more = replace(row, theirs=replace(row.theirs, cycles=row.theirs.cycles + 1))
    with pytest.raises(RuntimeError, match="are explained"):
        check([one_more], array)
    with pytest.raises(RuntimeError, match="cycles of products against"):
        check([replace(row, computing=row.computing + 1)], array)
    with pytest.raises(ValueError, match="dataflow ws with 2 columns; allowed: 1"):
        hardware(Array("ws", 8, 2))
    assert {case.array.dataflow for case in CASES} == {"os", "ws"}
