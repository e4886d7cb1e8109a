"""The operators by which kernels are classed."""

from __future__ import annotations

from tvm import relax

from tvm_ext.layers import Layer
from tvm_ext.passes import dataflow as df

Ops = tuple[str, ...]


def class_ops(layer: Layer) -> Ops:
    """A layer's operators in order, without the ``relax.`` prefix.

    Convolutions in several groups have names of their own, ``nn.conv2d_depthwise`` and
    ``nn.conv2d_grouped``, since their loops are others.
    """
    calls = [e for _, e in df.bindings(layer.function) if df.op_name(e)]
    return tuple(_qualified(call) for call in calls)


def _qualified(call: relax.Call) -> str:
    name = df.op_name(call).removeprefix("relax.")
    groups = int(getattr(call.attrs, "groups", 1)) if call.attrs is not None else 1
    if groups == 1:
        return name
    channels = df.shape_of(call.args[0])[1]
    return f"{name}_{'depthwise' if groups == channels else 'grouped'}"
