"""Break-even densities by hand, and the kernels of a small shape."""

import pytest

from benchmarks import sparse_kernels
from benchmarks.kernels import conv_kernel
from benchmarks.magnitude import SCHEMES
from benchmarks.sparse_kernels import break_even
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.target import resolve


@pytest.mark.parametrize(
    ("densities", "ratios", "wanted"),
    [
        ([0.1, 0.5], [0.5, 1.5], (0.3, "")),
        ([0.1, 0.25, 0.5], [0.2, 0.8, 1.2], (0.375, "")),
        ([0.1, 0.5], [0.5, 1.0], (0.5, ">")),
        ([0.1, 0.5], [1.1, 1.5], (0.1, "<")),
        # A slow one between two fast ones: from the first on it isn't faster.
        ([0.2, 0.4, 0.6], [0.5, 1.5, 0.5], (0.3, "")),
    ],
)
def test_break_even_by_hand(densities, ratios, wanted):
    density, beyond = break_even(densities, ratios)
    assert (pytest.approx(density), beyond) == wanted


class Probe:
    """An FMA peak of 10**9."""

    def rate(self, runs):
        return 1e9


def convolution(kernel):
    pad = (kernel // 2,) * 2
    return ConvWorkload(1, 16, (6, 6), 16, (kernel,) * 2, (1, 1), pad, pad, (1, 1))


@pytest.fixture
def one_dense(monkeypatch):
    """One dense kernel in place of all that may be the fastest."""

    def kernels(workload, target):
        return {"conv_gemm": conv_kernel("conv_gemm", workload, target)}

    monkeypatch.setattr(sparse_kernels, "_dense_kernels", kernels)


def test_a_small_shape(monkeypatch):
    monkeypatch.setattr(sparse_kernels, "SCHEMES", {"block_sparse": "block16", "no": "block16"})
    found = sparse_kernels.measure(convolution(3), (0.25, 0.5), resolve(), Probe(), 1)
    assert set(found.points) == {"block_sparse"}
    assert found.refused == {}
    assert not found.direct[0].startswith("winograd")
    assert found.dense[1] <= found.direct[1]
    assert [point.density for point in found.points["block_sparse"]] == pytest.approx(
        [0.25, 0.5], abs=0.01
    )
    for point in found.points["block_sparse"]:
        flops = 2 * 16 * 16 * 9 * 36 * point.density
        assert point.of_peak == pytest.approx(flops / point.seconds / 1e9)
        assert point.to_direct == pytest.approx(point.seconds / found.direct[1])
        assert point.to_dense == pytest.approx(point.seconds / found.dense[1])


def test_an_algorithm_that_refuses_says_why(monkeypatch, one_dense):
    # Patterns are of 3x3 kernels.
    monkeypatch.setattr(sparse_kernels, "SCHEMES", {"block_sparse": "pattern"})
    found = sparse_kernels.measure(convolution(1), (0.25,), resolve(), Probe(), 1)
    assert found.points == {}
    assert "patterns of 4 weights are for 3x3 kernels" in found.refused["block_sparse"]


def test_a_wrong_kernel_is_found(monkeypatch):
    monkeypatch.setattr(sparse_kernels, "SCHEMES", {"block_sparse": "block16"})
    monkeypatch.setattr(sparse_kernels, "_TOLERANCE", -1.0)
    with pytest.raises(RuntimeError, match=r"block_sparse at density 0\.25: the error is "):
        sparse_kernels.measure(convolution(3), (0.25,), resolve(), Probe(), 1)


def test_every_algorithm_has_a_scheme():
    assert set(sparse_kernels.SCHEMES.values()) <= set(SCHEMES)
