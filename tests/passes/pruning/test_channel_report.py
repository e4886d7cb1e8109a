"""What the report says, counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.pruning.channel_build import Weights
from tests.passes.pruning.channel_networks import NETWORKS
from tvm_ext.passes.pruning import ChannelPrune


def report_of(name):
    """Of a network at density 0.5, and its weights."""
    (network,) = (network for network in NETWORKS if network.name == name)
    weights = Weights()
    prune = ChannelPrune(0.5, multiple=1, exclude=())
    prune(network.module(weights))
    return prune.report, weights.arrays


def test_depthwise_and_pointwise_convolutions():
    report, _ = report_of("mobilenet")
    depthwise, pointwise = report["c"], report["d"]
    assert (depthwise.shape, depthwise.filters, depthwise.inputs) == ((12, 1, 3, 3), 6, 1)
    assert (depthwise.macs_before, depthwise.macs) == (36 * 12 * 9, 36 * 6 * 9)
    assert (pointwise.macs_before, pointwise.macs) == (36 * 12 * 8, 36 * 6 * 4)
    assert (pointwise.bytes_before, pointwise.bytes) == (4 * 12 * 8, 4 * 6 * 4)
    assert pointwise.density == 0.25


def test_groups_count_their_own_inputs():
    report, _ = report_of("resnext")
    assert (report["b"].shape[:2], report["b"].filters, report["b"].inputs) == ((8, 4), 4, 2)
    assert report["b"].macs * 4 == report["b"].macs_before


def test_kept_energy():
    report, arrays = report_of("vgg")
    norms = np.abs(arrays["a"]).sum((1, 2, 3))
    squares = np.square(arrays["a"], dtype="float64").sum((1, 2, 3))
    expected = squares[np.argsort(norms)[4:]].sum() / squares.sum()
    assert report["a"].kept_energy == pytest.approx(expected, rel=1e-12)


def test_rows_and_text():
    report, _ = report_of("vgg")
    assert report.rows[0]["filters"] == 4
    assert [row["name"] for row in report.rows] == ["a", "b", "c", "head"]
    text = str(report)
    assert "why filters stay" in text
    assert "an output of the model has them" in text
