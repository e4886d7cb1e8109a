"""The kernels that tuning looks at, and what they may win."""

from __future__ import annotations

import pytest

from tests.schedules.kernels import HOST
from tests.transfer.tuning import network
from tvm_ext.grouped_model import grouped
from tvm_ext.transfer.tune_task import tune_tasks


def test_kernels_by_their_share_of_the_time() -> None:
    layers = grouped(network(6, 4), HOST).layers
    names = [layer.name for layer in layers if "reshape" not in layer.name]
    first, second = tune_tasks(layers, dict(zip(names, (3e-6, 1e-6, 9e-6), strict=True)))
    assert second.layers == tuple(names[:2])
    assert (first.name, first.default_s) == (names[2], 9e-6)
    assert second.default_s == pytest.approx(4e-6)
    # Two layers of 1.5 us instead of 4 us together.
    assert second.gain(1.5e-6) == pytest.approx(1e-6)
    assert second.gain(3e-6) < 0
    assert second.work == 4 * 6 * 6 * 4 * 9
    assert first.key != second.key
