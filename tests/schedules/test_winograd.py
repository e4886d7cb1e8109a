"""What Winograd convolution takes, how it packs weights, and which parameters it chooses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.schedules import oracles
from tests.schedules.convolutions import TARGETS, assert_uses_vectors
from tests.schedules.kernels import HOST, NEON
from tests.schedules.oracles import conv_workload
from tvm_ext.schedules import algorithms
from tvm_ext.schedules.winograd_matrices import TRANSFORMS

V = HOST.lanes
NAMES = {2: "winograd_2x2", 4: "winograd_4x4"}
LAYER = conv_workload(16, (8, 8), 16, 3, 1, 1)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (conv_workload(16, (8, 8), 16, 5, 1, 2), "kernel (5, 5); only (3, 3)"),
        (conv_workload(16, (8,), 16, 3, 1, 1), "kernel (3,); only (3, 3)"),
        (conv_workload(16, (8, 8), 16, 3, 2, 1), "strides (2, 2); only (1, 1)"),
        (conv_workload(16, (8, 8), 16, 3, 1, 1, dilation=2), "dilation (2, 2); only (1, 1)"),
        (conv_workload(16, (8, 8), 16, 3, 1, 1, groups=2), "groups 2; only 1"),
        (replace(LAYER, dtype="float16"), "dtype float16; only float32"),
    ],
    ids=str,
)
def test_refusals_name_the_property(changed: object, reason: str) -> None:
    algorithm = algorithms()["winograd_4x4"]
    assert algorithm.supports(LAYER, HOST)
    assert algorithm.supports(changed, HOST).reason == reason


@pytest.mark.parametrize("m", NAMES)
def test_illegal_parameters_are_named(m: int) -> None:
    algorithm = algorithms()[NAMES[m]]
    params = {**algorithm.default(LAYER, HOST), "rows": 99}
    problem = algorithm.check(LAYER, params, HOST)
    assert problem.startswith(f"{NAMES[m]}.rows = 99 is not one of")


@pytest.mark.parametrize("m", NAMES)
def test_weights_are_transformed_and_cut_in_panels(m: int) -> None:
    w, algorithm = conv_workload(3, (8, 8), 2 * V + 1, 3, 1, 1), algorithms()[NAMES[m]]
    weight = oracles.random((2 * V + 1, 3, 3, 3), 1)
    params = {**algorithm.default(w, HOST), "blocks": 2}
    (panels,) = algorithm.pack(w, params, HOST, [weight])
    a = m + 2
    # Panel, frequency, input channel, vector, lane. The second panel overlaps the first.
    assert panels.shape == (2, a * a, 3, 2, V)
    g = np.asarray(TRANSFORMS[m].kernel)
    for channel, panel, vector, lane in ((1, 0, 0, 1), (V + 2, 1, 0, 2), (2 * V, 1, 1, 0)):
        want = g @ weight[channel, 2].astype("float64") @ g.T
        got = panels[panel, :, 2, vector, lane].reshape(a, a)
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(panels[1, :, :, 1, 1:], 0)


@pytest.mark.parametrize("m", NAMES)
def test_stated_tolerance_and_layout(m: int) -> None:
    algorithm = algorithms()[NAMES[m]]
    assert algorithm.tolerance(LAYER, {}) == TRANSFORMS[m].tolerance
    assert algorithm.layouts(LAYER, HOST) == ((V, V),)


@pytest.mark.parametrize("m", NAMES)
def test_small_maps_on_several_cores_share_output_channels(m: int) -> None:
    """One row of tiles can't be shared, so that only `pieces` gives each core its part."""
    w, algorithm = conv_workload(64, (m, 16 * m), 64, 3, 1, 1), algorithms()[NAMES[m]]
    assert algorithm.default(w, replace(NEON, cores=4))["pieces"] == 4
    assert algorithm.default(w, replace(NEON, cores=1))["pieces"] == 1


@pytest.mark.parametrize("target", TARGETS)
def test_other_targets_use_their_vectors(target: str) -> None:
    block = TARGETS[target].lanes
    assert_uses_vectors("winograd_2x2", target, (block, block))
