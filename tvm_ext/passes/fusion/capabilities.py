"""What our kernels can do around their anchor: the limits within which groups grow."""

from __future__ import annotations

from typing import Any

from tvm.ir import GenericConst

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.fusion.channel_window import channel_window
from tvm_ext.schedules.epilogue import Epilogue, Operand
from tvm_ext.schedules.step_depth import deepest
from tvm_ext.schedules.strided_view import StridedView

_CONVOLUTIONS = frozenset(
    f"relax.nn.conv{n}d{suffix}" for n in (1, 2, 3) for suffix in ("", "_transpose")
)
_POOLS = frozenset(f"relax.nn.{kind}_pool{n}d" for kind in ("max", "avg") for n in (1, 2, 3))
NORMALIZATIONS = frozenset(
    ("relax.nn.softmax", "relax.nn.log_softmax", "relax.nn.layer_norm", "relax.nn.rms_norm")
)
# Kernels that compute rows, and so take any shape with the same rows for the result's.
_ROWWISE = frozenset(("relax.matmul",))
_BY_ROWS = _ROWWISE | NORMALIZATIONS
_WITH_EPILOGUE = _CONVOLUTIONS | _POOLS | _BY_ROWS

# How much of `_MAX_NESTED` a function takes: under a convolution two sigmoids in a row compile in a
# second, two exponentials in half a minute, two softplus in three.
_NESTED = {
    **dict.fromkeys(
        (
            "log", "tanh", "sigmoid", "silu", "sinh", "cosh", "asinh", "acosh",
            "atanh", "gelu_tanh", "power", "mod", "floor_mod",
        ), 1,
    ),
    "erf": 2, "gelu": 2, "exp": 2, "softplus": 2,
}  # fmt: skip
_MAX_NESTED = 2


def takes_epilogue(expr: Any) -> bool:
    """Whether an operator's kernel goes on with elementwise steps on its result."""
    return df.op_name(expr) in _WITH_EPILOGUE


def takes_prologue(expr: Any) -> bool:
    """Whether an operator's kernel can apply elementwise steps to what it reads."""
    name = df.op_name(expr)
    if channel_window(expr) is not None:
        return True
    if name == "relax.nn.avg_pool2d":
        # One window over all positions is another kernel.
        planar = str(expr.attrs.layout).startswith("NC")
        return planar and any(n != 1 for n in df.shape_of(expr)[2:])
    return name in ("relax.nn.conv1d", "relax.nn.conv2d", "relax.nn.conv3d")


def prologue_refusal(expr: Any, prologue: Epilogue) -> str:
    """Why a kernel can't apply these steps to what it reads; an empty string if it can."""
    if df.op_name(expr) in _POOLS and prologue.operands:
        return "the kernel of a pool has no constants for the steps before it"
    return ""


def takes_pool(expr: Any, pool: Any) -> bool:
    """Whether an operator's kernel can go on with a pool of its result."""
    dims = next((n for n in (2, 3) if df.op_name(expr) == f"relax.nn.conv{n}d"), 0)
    if df.op_name(pool) not in (f"relax.nn.max_pool{dims}d", f"relax.nn.avg_pool{dims}d"):
        return False
    # Others slide over its channels.
    return str(pool.attrs.layout).startswith("NC")


def anchor_refusal(anchor: tuple[Any, Any], direct: bool, out: StridedView, result: Any) -> str:
    """Why an anchor's kernel can't read or store like that; an empty string if it can.

    Parameters
    ----------
    anchor : tuple of Var and Call
    direct : bool
        Whether nothing is moved before it.
    out : StridedView
        Where it stores its result; see `KernelForm`.
    result : Var
        The group's result.
    """
    var, call = anchor
    name = df.op_name(call)
    short = name.removeprefix("relax.")
    if name not in _WITH_EPILOGUE:
        return f"the kernel of {short} takes nothing else"
    if df.dtype_of(result) != df.dtype_of(var):
        return f"the kernel of {short} stores {df.dtype_of(var)}, not {df.dtype_of(result)}"
    if name not in _ROWWISE:
        shuffled = len(out.shape) > len(df.shape_of(var))
        if df.shape_of(result) != df.shape_of(var) or not (out.is_contiguous or shuffled):
            return f"the kernel of {short} stores its result in its own order"
        return "" if direct else f"the kernel of {short} reads whole tensors"
    if any(isinstance(arg, GenericConst) for arg in call.args):
        in_place = direct and out.is_contiguous
        return "" if in_place else "products with constants read and store whole tensors"
    if out.shape[-1] != 1 and out.strides[-1] != 1:
        return "a product's columns are stored next to each other"
    return ""


def operand_refusal(anchor: tuple[Any, Any] | None, operand: Operand, source: Any) -> str:
    """Why a kernel can't read `source` as an operand of its steps."""
    view = operand.view
    if anchor is not None and operand.repeat and df.op_name(anchor[1]) in _BY_ROWS:
        return "a kernel of rows reads no operand several times"
    if anchor is None:
        row = view is not None and view.shape[-1:] not in ((), (1,))
        if row and view is not None and view.strides[-1] not in (0, 1):
            return "an operand's neighbours lie apart"
        own = df.shape_of(source)
        if (
            view is not None
            and len(own) == 4
            and view.strides == StridedView.contiguous(own).strides
        ):
            # A feature map, which may be stored in blocks of channels; so can be a part of it.
            return "a part of a feature map"
        return ""
    if view is not None:
        return "a kernel with an anchor reads its operands in order"
    # Operands per channel follow the blocks of the result, which a lower rank can't have.
    constant, rank = isinstance(source, GenericConst), len(df.shape_of(source))
    per_channel = df.op_name(anchor[1]) not in _ROWWISE and operand.shape[1:2] not in ((), (1,))
    if per_channel and not constant and rank != len(operand.shape):
        return "an operand per channel has another rank than the result"
    return ""


def chain_refusal(epilogue: Epilogue) -> str:
    """Why the steps are too much for one kernel.

    TVM expands the expressions of transcendental functions into each other, and takes several
    times as long for each one more that a value goes through.
    """

    def nested(number: int) -> int:
        # Mish's tanh(softplus(x)) is one function.
        name = epilogue.steps[number].op
        return 0 if _is_mish_tanh(epilogue, number) else _NESTED.get(name, 0)

    too_many = deepest(epilogue, nested) > _MAX_NESTED
    return "too many transcendental functions in a row" if too_many else ""


def _is_mish_tanh(epilogue: Epilogue, number: int) -> bool:
    step = epilogue.steps[number]
    if step.op != "tanh" or step.args[0][0] != "value":
        return False
    source = step.args[0][1] - epilogue.results
    return source >= 0 and epilogue.steps[source].op == "softplus"
