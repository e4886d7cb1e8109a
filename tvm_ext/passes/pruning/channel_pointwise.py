"""Channels through operators that leave most axes alone: elementwise, pools, reductions, norms."""

from __future__ import annotations

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.axes import reduced_axes
from tvm_ext.passes.elementwise import aligned_shape
from tvm_ext.passes.pruning.channel_labels import Axis, Labels
from tvm_ext.passes.pruning.channel_rule import Rule
from tvm_ext.passes.pruning.channel_step import Step


def _follow_elementwise(step: Step) -> Labels:
    """Operands are aligned as NumPy broadcasts them; a PRelu's slopes by its axis."""
    shape = df.shape_of(step.var)
    count = len(df.tensors(step.call))
    if count == 1:
        return step.labels()
    met: list[list[Axis]] = [[] for _ in shape]
    for position in range(count):
        own = [
            axis for axis, n in zip(step.axes(position), step.shape(position), strict=True) if n > 1
        ]
        aligned = aligned_shape(step.call, position, len(shape))
        for place, axis in zip((i for i, n in enumerate(aligned) if n > 1), own, strict=True):
            met[place].append(axis)
    return Labels(tuple(map(step.merge, met)))


def _follow_window(step: Step) -> Labels:
    """A pool, or a resize: positions next to each other in each channel."""
    layout = str(step.call.attrs.layout)
    passing = [layout.index("N"), layout.index("C")]
    return Labels(step.only(step.axes(), passing, "reads them as positions"))


def _follow_reduction(step: Step) -> Labels:
    return _reduced(step, reduced_axes(step.call))


def _follow_extremum_place(step: Step) -> Labels:
    axis, rank = step.call.attrs.axis, len(step.shape())
    return _reduced(step, range(rank) if axis is None else [int(axis) % rank])


def _reduced(step: Step, over: object) -> Labels:
    gone = set(over)
    axes = step.only(
        step.axes(), [i for i in range(len(step.shape())) if i not in gone], "computes over them"
    )
    keep = bool(step.call.attrs.keepdims)
    return Labels(tuple(axis for i, axis in enumerate(axes) if keep or i not in gone))


def _follow_along(step: Step) -> Labels:
    """A softmax or running sum along one axis; without any along all."""
    axis, rank = step.call.attrs.axis, len(step.shape())
    over = set() if axis is None else set(range(rank)) - {int(axis) % rank}
    out = step.only(step.axes(), sorted(over), "computes over them")
    return Labels(out if len(df.shape_of(step.var)) == rank else (None,))


def _follow_norm(step: Step) -> Labels:
    """A layer, RMS or instance norm: statistics over some axes."""
    rank = len(step.shape())
    over = {int(a) % rank for a in step.call.attrs.axes}
    axes = list(step.only(step.axes(), sorted(set(range(rank)) - over), "normalises over them"))
    if df.op_name(step.call) == "relax.nn.instance_norm":
        channel = int(step.call.attrs.channel_axis) % rank
        if step.shape()[channel] > 1:
            axes[channel] = step.merge([axes[channel], step.axes(1)[0], step.axes(2)[0]])
    return Labels(tuple(axes))


_POOLS = ("max_pool{}d", "avg_pool{}d", "adaptive_avg_pool{}d")
_REDUCTIONS = ("mean", "sum", "max", "min", "prod", "std", "variance")

RULES = {
    **{f"relax.nn.{pool.format(n)}": Rule(_follow_window) for pool in _POOLS for n in (1, 2, 3)},
    "relax.image.resize2d": Rule(_follow_window),
    **{f"relax.{name}": Rule(_follow_reduction) for name in _REDUCTIONS},
    "relax.argmax": Rule(_follow_extremum_place),
    "relax.argmin": Rule(_follow_extremum_place),
    "relax.nn.softmax": Rule(_follow_along),
    "relax.nn.log_softmax": Rule(_follow_along),
    "relax.cumsum": Rule(_follow_along),
    "relax.nn.layer_norm": Rule(_follow_norm),
    "relax.nn.rms_norm": Rule(_follow_norm),
    "relax.nn.instance_norm": Rule(_follow_norm),
}
ELEMENTWISE = Rule(_follow_elementwise)
