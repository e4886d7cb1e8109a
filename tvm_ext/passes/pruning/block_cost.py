"""How long the compiler's sparse kernels would take for weights that are pruned in blocks."""

from __future__ import annotations

from functools import lru_cache
from math import prod

from tvm_ext.errors import OptionError
from tvm_ext.schedules import algorithms
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.sparsity import Sparsity
from tvm_ext.sparsity.summary import PANEL_ROWS
from tvm_ext.target import CpuTarget, resolve

# Positions of the output along the last spatial dimensions: of a network's middle.
_POSITIONS = {1: (784,), 2: (28, 28), 3: (8, 28, 28)}


def block_seconds(shape: tuple[int, ...], block: tuple[int, int], density: float) -> float:
    """Estimated time of a layer whose weights keep a share of the columns of each block.

    It is the least that the cost models of the sparse kernels give for a convolution with these
    weights, with stride 1 and an output of 28 x 28 positions (784 in one dimension, 8 x 28 x 28 in
    three; 784 rows for a matmul), on this machine. So the answer depends on the weights' shape
    alone, and is the same while a model is trained and when it is compiled.

    Parameters
    ----------
    shape : tuple of int
        (filters, inputs of a filter, *kernel). A filter with one input is taken as depthwise.
    block : (int, int)
        Filters and columns; columns don't matter here.
    density : float
        Share of the columns that is kept, at random places.

    Returns
    -------
    float
        Seconds.

    Raises
    ------
    OptionError
        No sparse kernel takes such a convolution.
    """
    return _seconds(shape, block[0], density, resolve("native"))


@lru_cache(maxsize=1024)
def _seconds(shape: tuple[int, ...], rows: int, density: float, target: CpuTarget) -> float:
    workload = _workload(shape, rows, density)
    candidates = {
        name: algorithm
        for name, algorithm in algorithms(workload).items()
        if algorithm.storage != "dense"
    }
    reasons, seconds = [], []
    for name, algorithm in candidates.items():
        support = algorithm.supports(workload, target)
        if support:
            params = algorithm.default(workload, target)
            seconds.append(algorithm.cost(workload, params, target))
        else:
            reasons.append(f"{name}: {support.reason}")
    if not seconds:
        raise OptionError(f"block='auto' on weights of shape {shape}: {'; '.join(reasons)}")
    return min(seconds)


def _workload(shape: tuple[int, ...], rows: int, density: float) -> ConvWorkload:
    filters, inputs, *kernel = shape
    taps = tuple(kernel) or (1,)
    groups = filters if inputs == 1 else 1
    out = _POSITIONS[len(taps)]
    return ConvWorkload(
        batch=1, in_channels=inputs * groups, spatial=out, out_channels=filters, kernel=taps,
        strides=(1,) * len(taps), pad_before=tuple((k - 1) // 2 for k in taps),
        pad_after=tuple(k // 2 for k in taps), dilation=(1,) * len(taps), groups=groups,
        sparsity=block_sparsity(shape, rows, density),
    )  # fmt: skip


def block_sparsity(shape: tuple[int, ...], rows: int, density: float) -> Sparsity:
    """The counts to expect of weights that keep columns of `rows` filters at random.

    Parameters
    ----------
    shape : tuple of int
        (filters, inputs of a filter, *kernel).
    rows : int
        Filters that have their zeros in the same columns.
    density : float
        Share of the columns kept.
    """
    filters, columns = shape[0], prod(shape[1:])
    vectors = []
    for lanes in PANEL_ROWS:
        # A panel over several blocks needs what one of them needs.
        share = 1 - (1 - density) ** max(1, -(-lanes // rows))
        vectors.append((lanes, round(-(-filters // lanes) * columns * share)))
    return Sparsity(filters * columns, round(filters * columns * density), tuple(vectors))
