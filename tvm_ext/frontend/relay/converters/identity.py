"""Operators that only told Relay's compiler something; here they are their argument."""

from __future__ import annotations

from tvm import relax

from tvm_ext.frontend.relay.registry import OpCall, converts


@converts(
    "annotation.cast_hint",
    "annotation.checkpoint",
    "annotation.compiler_begin",
    "annotation.compiler_end",
    "annotation.stop_fusion",
    "copy",
    "device_copy",
    "on_device",
)
def convert_identity(call: OpCall) -> relax.Expr:
    """Return the argument."""
    return call.tensor(0)


@converts("nn.dropout")
def convert_dropout(call: OpCall) -> list[relax.Expr]:
    """Convert dropout at inference: the argument, and a mask that keeps everything."""
    return [call.tensor(0), call.emit(relax.op.ones_like, call.tensor(0))]
