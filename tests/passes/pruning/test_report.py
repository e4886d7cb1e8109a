"""Reports, against numbers worked by hand."""

from __future__ import annotations

import numpy as np
import pytest
from relax_models import array, const, module
from tvm import relax

from tvm_ext.passes.pruning import Prunable, PruningReport, prunables
from tvm_ext.passes.pruning.report import layer_report, stored_bytes
from tvm_ext.sparsity import ColumnPanels


@pytest.fixture
def layer() -> Prunable:
    """(2, 4) weights 1 to 8 on three rows."""
    weight = np.arange(1, 9, dtype="float32").reshape(2, 4).T

    def body(emit, x):
        return relax.op.matmul(x, const(weight))

    return prunables(module({"x": (3, 4)}, body))[0]


def test_a_layer_is_compared_with_what_it_becomes(layer: Prunable) -> None:
    pruned = np.array([[0, 0, 0, 4], [0, 0, 0, 8]], "float32")
    row = layer_report(layer, pruned)
    assert (row.kind, row.shape, row.note) == ("matmul", (2, 4), "")
    assert row.density == 0.25
    assert row.kept_energy == pytest.approx(80 / 204)
    assert (row.macs_before, row.macs) == (24, 6)
    # One vector of two values with its column, and pointers to the begin and end of one panel.
    assert (row.bytes_before, row.bytes) == (32, 4 * (2 + 1 + 2))


def test_weights_of_zeros_lose_nothing() -> None:
    zeros = np.zeros((2, 4), "float32")

    def body(emit, x):
        return relax.op.matmul(x, const(zeros.T))

    (layer,) = prunables(module({"x": (3, 4)}, body))
    row = layer_report(layer, zeros)
    assert (row.kept_energy, row.density, row.macs) == (1.0, 0.0, 0)


@pytest.mark.parametrize("density", [0.05, 0.3, 1.0])
def test_stored_bytes_are_those_of_the_best_panels(density: float) -> None:
    weights = array(0, 20, 9, 3)
    weights[np.random.default_rng(1).random(weights.shape) > density] = 0
    matrix = weights.reshape(20, -1)
    sizes = [ColumnPanels.from_dense(matrix, lanes).nbytes for lanes in (1, 2, 4, 8)]
    padded = ColumnPanels.from_dense(matrix, 16)
    expected = min(weights.nbytes, *sizes, padded.nbytes)
    assert stored_bytes(weights) == expected


def test_totals_and_tables(layer: Prunable) -> None:
    pruned = np.where(layer.weights > 7, layer.weights, 0)
    report = PruningReport(
        (layer_report(layer, pruned), layer_report(layer, layer.weights, "excluded by '*[x]'"))
    )
    assert report.density == pytest.approx(9 / 16)
    assert report.macs_density == pytest.approx(27 / 48)
    assert report["gv"] is report.layers[0]
    with pytest.raises(KeyError, match="stem"):
        report["stem"]
    assert report.rows[0]["density"] == 0.125
    assert report.rows[1]["note"] == "excluded by '*[x]'"
    assert list(report.rows[0])[:3] == ["name", "kind", "shape"]
    text = str(report)
    assert "2x4" in text
    assert "excluded by '*[x]'" in text
    assert "0.125" in text
    assert "0.562" in text.splitlines()[-2]
