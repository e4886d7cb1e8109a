"""The loops of Winograd convolution: every cut of tiles, panels and tasks, against NumPy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.schedules import oracles
from tests.schedules.convolutions import case
from tests.schedules.kernels import HOST, Case
from tests.schedules.oracles import conv_workload
from tvm_ext.schedules.conv_workload import ConvWorkload

V = HOST.lanes
NAMES = {2: "winograd_2x2", 4: "winograd_4x4"}
# Random data stays far below the stated tolerances; a wrong transform doesn't.
TOLERANCE = {2: 2e-6, 4: 2e-5}


def winograd(m: int, w: ConvWorkload, **params: Any) -> tuple[Case, np.ndarray]:
    return case(NAMES[m], w, (V, V), **params)


@pytest.mark.parametrize("m", NAMES)
def test_maps_around_the_tile(m: int) -> None:
    cases = {
        size: winograd(m, oracles.with_residual(conv_workload(8, (size, size + 3), 16, 3, 1, 1)))
        for size in (m, 2 * m - 1, 2 * m, 2 * m + 1)
    }
    oracles.agree(cases, TOLERANCE[m])


@pytest.mark.parametrize("m", NAMES)
def test_odd_channels_batch_and_padding(m: int) -> None:
    base = conv_workload(20, (9, 10), 21, 3, 1, 1, batch=2)
    cases = {
        "padded": winograd(m, base),
        "valid": winograd(m, replace(base, pad_before=(0, 0), pad_after=(0, 0))),
        "one side": winograd(m, replace(base, pad_before=(0, 2), pad_after=(1, 0))),
        "padding past the kernel": winograd(m, conv_workload(3, (2, 3), 5, 3, 1, 4)),
    }
    oracles.agree(cases, TOLERANCE[m])


@pytest.mark.parametrize("m", NAMES)
def test_parameters_change_the_loops_only(m: int) -> None:
    w = conv_workload(16, (20, 12), 40, 3, 1, 1)
    cases = {
        "uneven rows": winograd(m, w, rows=2),
        "pieces": winograd(m, w, pieces=2),
        "small tile": winograd(m, w, tile=2, blocks=1),
    }
    oracles.agree(cases, TOLERANCE[m])


@pytest.mark.parametrize("m", NAMES)
def test_infinity_and_nan_stay_in_their_neighbourhood(m: int) -> None:
    w = conv_workload(8, (3 * m, 3 * m), HOST.lanes, 3, 1, 1)
    made, _ = winograd(m, w)
    data = np.zeros(w.in_shape, "float32")
    data[0, 0, 0, 0] = np.nan
    (result,) = oracles.run_all([replace(made, data=[data])])
    assert np.isnan(result[0, :, 0, 0]).all()
    assert np.isfinite(result[0, :, 2 * m :, 2 * m :]).all()
