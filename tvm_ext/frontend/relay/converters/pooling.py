"""Pools: windows, whole images and adaptive ones, as ``relax.nn.{max,avg}_pool{1,2,3}d``.

``ceil_mode`` becomes explicit end padding, so that later passes meet one form only.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.frontend.onnx_converters import padding as onnx_padding
from tvm_ext.frontend.onnx_converters.values import const, dtype_of, shape_of
from tvm_ext.frontend.relay.converters.convolution import spatial_rank
from tvm_ext.frontend.relay.converters.moves import relayout
from tvm_ext.frontend.relay.converters.windows import SPATIAL, ceil_pads, pads, per_axis
from tvm_ext.frontend.relay.registry import OpCall, converts


@converts(
    *(f"nn.{kind}_pool{rank}d" for kind in ("max", "avg") for rank in SPATIAL)
)  # fmt: skip
def convert_pool(call: OpCall) -> relax.Expr:
    """Convert a pool over sliding windows."""
    return pooled(call, call.tensor(0))


def pooled(call: OpCall, data: relax.Expr) -> relax.Expr:
    """Return the pool of a tensor that a call's attributes describe, in its output layout."""
    rank, data, result = _plain(call, data)
    sizes = shape_of(data)[2:]
    kernel = per_axis(call, "pool_size", rank)
    strides, dilations = per_axis(call, "strides", rank), per_axis(call, "dilation", rank)
    padding = pads(call, rank)
    counted = bool(call.attr("count_include_pad", False))
    if call.attr("ceil_mode", False):
        reaching = ceil_pads(sizes, kernel, strides, dilations, padding)
        if counted and _kind(call) == "avg" and reaching != padding:
            # The padding counts, what the last window reaches behind it doesn't.
            widths = np.asarray([0, 0, *padding[:rank], 0, 0, *padding[rank:]], "int64")
            filler = const(np.zeros((), dtype_of(data)))
            data = call.onnx(onnx_padding.convert_pad, [data, const(widths), filler])
            ends = (end - own for end, own in zip(reaching, padding, strict=True))
            padding, counted = list(ends), False
        else:
            padding = reaching
    out = _pool(call, data, kernel, strides, padding, dilations, counted)
    return relayout(call.bb, out, f"NC{SPATIAL[rank]}", result)


@converts(
    *(f"nn.global_{kind}_pool{rank}d" for kind in ("max", "avg") for rank in SPATIAL)
)  # fmt: skip
def convert_global_pool(call: OpCall) -> relax.Expr:
    """Convert a pool over the whole image: one window."""
    rank, data, result = _plain(call, call.tensor(0))
    out = _pool(call, data, shape_of(data)[2:], [1] * rank, [0] * (2 * rank), [1] * rank)
    return relayout(call.bb, out, f"NC{SPATIAL[rank]}", result)


@converts(
    *(f"nn.adaptive_{kind}_pool{rank}d" for kind in ("max", "avg") for rank in SPATIAL)
)  # fmt: skip
def convert_adaptive_pool(call: OpCall) -> relax.Expr:
    """Convert a pool with a given output size, an empty one meaning the input's.

    Output i is over the inputs from ``floor(i * n / m)`` up to ``ceil((i + 1) * n / m)``.
    """
    rank, data, result = _plain(call, call.tensor(0))
    sizes = shape_of(data)[2:]
    wanted = call.attr("output_size") or list(sizes)
    wanted = list(wanted) if isinstance(wanted, list | tuple) else [wanted]
    wanted = [int(m) for m in (wanted * rank if len(wanted) == 1 else wanted)]
    if len(wanted) != rank:
        raise ModelError(f"output_size is {wanted}; it must be 1 or {rank} numbers")
    if all(n % m == 0 for n, m in zip(sizes, wanted, strict=True)):
        kernel = [n // m for n, m in zip(sizes, wanted, strict=True)]
        out = _pool(call, data, kernel, kernel, [0] * (2 * rank), [1] * rank)
    elif _kind(call) == "avg":
        pool = getattr(relax.op.nn, f"adaptive_avg_pool{rank}d")
        dtype = dtype_of(data)
        real = call.cast(data, "float64") if "int" in dtype else data
        out = call.cast(call.emit(pool, real, wanted, f"NC{SPATIAL[rank]}"), dtype)
    else:
        out = data
        for axis, size in enumerate(wanted, start=2):
            out = _adaptive_max(call, out, axis, size)
    return relayout(call.bb, out, f"NC{SPATIAL[rank]}", result)


def _plain(call: OpCall, data: relax.Expr) -> tuple[int, relax.Expr, str]:
    """The number of spatial dimensions, the data with channels first, and the result's layout."""
    rank = spatial_rank(call)
    plain = f"NC{SPATIAL[rank]}"
    layout = str(call.attr("layout", plain))
    data = relayout(call.bb, data, layout, plain)
    return rank, data, str(call.attr("out_layout", "") or layout)


def _kind(call: OpCall) -> str:
    return "max" if "max_pool" in call.name else "avg"


def _pool(
    call: OpCall,
    data: relax.Expr,
    kernel: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[int],
    dilations: Sequence[int],
    count_include_pad: bool = False,
) -> relax.Expr:
    """Pool, averages of whole numbers rounded towards zero.

    Those are exact in float64; Relax's own kernel gives another dtype than its type says.
    """
    rank, dtype = len(kernel), dtype_of(data)
    whole = _kind(call) == "avg" and "int" in dtype
    out = call.emit(
        getattr(relax.op.nn, f"{_kind(call)}_pool{rank}d"),
        call.cast(data, "float64") if whole else data,
        list(kernel),
        list(strides),
        list(padding),
        list(dilations),
        False,
        count_include_pad,
        f"NC{SPATIAL[rank]}",
    )
    return call.cast(out, dtype)


def _adaptive_max(call: OpCall, data: relax.Expr, axis: int, size: int) -> relax.Expr:
    """Maxima along one axis: as many elements for each output, a window's last one repeated."""
    extent = shape_of(data)[axis]
    first = np.arange(size) * extent // size
    last = -(-(np.arange(size) + 1) * extent // size) - 1
    taps = int((last - first).max()) + 1
    indices = np.minimum(first[:, None] + np.arange(taps), last[:, None])
    windows = call.emit(relax.op.take, data, const(indices, "int64"), axis, mode="clip")
    return call.emit(relax.op.max, windows, [axis + 1])
