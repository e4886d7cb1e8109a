"""Winograd against direct convolution in float64, with its stated error, and its refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.schedules import oracles
from tests.schedules.kernels import AVX512, HOST, NEON, Case, assembly
from tests.schedules.oracles import conv_workload
from tvm_ext.schedules import algorithms
from tvm_ext.schedules.winograd_matrices import TRANSFORMS, transform_weights

NAMES = {2: "winograd_2x2", 4: "winograd_4x4"}
# Random data stays far below the stated tolerances; a wrong transform doesn't.
TOLERANCE = {2: 2e-6, 4: 2e-5}


def _case(m, w, **params):
    data = oracles.random(w.in_shape, 0)
    weight = oracles.random((w.out_channels, w.in_channels, 3, 3), 1)
    operands = oracles.operands_of(w)
    expected = oracles.finished(oracles.conv(w, data, weight), w, operands)
    layout = (HOST.lanes, HOST.lanes)
    fields = {"layout": layout, "params": params, "operands": operands, "weights": [weight]}
    return Case(NAMES[m], w, data=[data], **fields), expected


@pytest.mark.parametrize("m", NAMES)
def test_maps_around_the_tile(m):
    cases = {
        size: _case(m, oracles.with_residual(conv_workload(8, (size, size + 3), 16, 3, 1, 1)))
        for size in (m, 2 * m - 1, 2 * m, 2 * m + 1)
    }
    oracles.agree(cases, TOLERANCE[m])


@pytest.mark.parametrize("m", NAMES)
def test_odd_channels_batch_and_padding(m):
    base = conv_workload(20, (9, 10), 21, 3, 1, 1, batch=2)
    cases = {
        "padded": _case(m, base),
        "valid": _case(m, replace(base, pad_before=(0, 0), pad_after=(0, 0))),
        "one side": _case(m, replace(base, pad_before=(0, 2), pad_after=(1, 0))),
    }
    oracles.agree(cases, TOLERANCE[m])


@pytest.mark.parametrize("m", NAMES)
def test_parameters_change_the_loops_only(m):
    w = conv_workload(16, (20, 12), 40, 3, 1, 1)
    cases = {
        "uneven rows": _case(m, w, rows=2),
        "pieces": _case(m, w, pieces=2),
        "small tile": _case(m, w, tile=2, blocks=1),
    }
    oracles.agree(cases, TOLERANCE[m])


@pytest.mark.parametrize("m", NAMES)
def test_one_dimensional_transform_is_exact(m):
    """A^T [(G g) * (B^T d)] is the correlation of d with g, in rational numbers."""
    t, rng = TRANSFORMS[m], np.random.default_rng(0)
    d, g = rng.standard_normal(m + 2), rng.standard_normal(3)
    left, kernel, right = (np.asarray(x, "float64") for x in (t.output, t.kernel, t.input))
    np.testing.assert_allclose(left @ ((kernel @ g) * (right @ d)), np.correlate(d, g), rtol=1e-12)


def test_weights_are_transformed_on_both_sides():
    g = np.asarray(TRANSFORMS[2].kernel)
    weight = oracles.random((3, 2, 3, 3), 0)
    expected = g @ weight[2, 1].astype("float64") @ g.T
    np.testing.assert_allclose(transform_weights(weight, 2)[:, :, 2, 1], expected, rtol=1e-12)


@pytest.mark.parametrize("m", NAMES)
def test_infinity_and_nan_stay_in_their_neighbourhood(m):
    w = conv_workload(8, (3 * m, 3 * m), 8, 3, 1, 1)
    case, _ = _case(m, w)
    data = np.zeros(w.in_shape, "float32")
    data[0, 0, 0, 0] = np.nan
    (result,) = oracles.run_all([replace(case, data=[data])])
    assert np.isnan(result[0, :, 0, 0]).all()
    assert np.isfinite(result[0, :, 2 * m :, 2 * m :]).all()


def test_refusals_name_the_property():
    algorithm, w = algorithms()["winograd_4x4"], conv_workload(16, (8, 8), 16, 3, 1, 1)
    assert algorithm.supports(w, HOST)
    for changed, reason in (
        (conv_workload(16, (8, 8), 16, 5, 1, 2), "kernel (5, 5); only (3, 3)"),
        (conv_workload(16, (8, 8), 16, 3, 2, 1), "strides (2, 2); only (1, 1)"),
        (conv_workload(16, (8, 8), 16, 3, 1, 1, groups=2), "groups 2; only 1"),
        (replace(w, dtype="float16"), "dtype float16; only float32"),
    ):
        assert algorithm.supports(changed, HOST).reason == reason
    params = {**algorithm.default(w, HOST), "rows": 99}
    assert algorithm.check(w, params, HOST).startswith("winograd_4x4.rows = 99 is not one of")


@pytest.mark.parametrize("target", [AVX512, NEON], ids=["avx512", "neon"])
def test_other_targets_use_their_vectors(target):
    w = conv_workload(16, (16, 16), 32, 3, 1, 1)
    text = assembly("winograd_2x2", w, target, (target.lanes, target.lanes))
    lines = [line for line in text.splitlines() if "vfmadd" in line or "fmla" in line]
    assert any("zmm" in line if target is AVX512 else ".4s" in line for line in lines)
