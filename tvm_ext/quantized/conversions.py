"""``quantize`` and ``dequantize`` at the border of the quantised part, as elementwise kernels.

``quantize``: ``clip(rne(x / scale) + zero)`` in float32; ``dequantize``: ``f32(x - zero) * scale``.
They keep channel blocks as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax

from tvm_ext.codegen.byoc.graph import INTEGERS
from tvm_ext.passes import dataflow as df
from tvm_ext.quantized.read_layer import IntegerLayer
from tvm_ext.schedules.epilogue import Epilogue, Operand, Ref, Step
from tvm_ext.schedules.workload import ElementwiseWorkload


def conversion(pairs: list[tuple[Any, Any]]) -> IntegerLayer | None:
    """The kernel of a group that is one conversion between float32 and 8 bits, one scale a tensor.

    None for any other group, and for a tensor without dimensions.
    """
    if len(pairs) != 1:
        return None
    call = pairs[0][1]
    name = df.op_name(call)
    if name not in ("relax.quantize", "relax.dequantize"):
        return None
    data, *constants = call.args
    arrays = [df.value_of(c) for c in constants]
    if not isinstance(data, relax.Var) or any(a is None or a.size != 1 for a in arrays):
        return None
    shape, source, result = df.shape_of(data), df.dtype_of(data), str(call.attrs.out_dtype)
    scale, zero = (np.asarray(a).reshape(()).item() for a in arrays)
    quantizes = name == "relax.quantize"
    real, integers = (source, result) if quantizes else (result, source)
    if not shape or real != "float32" or integers not in INTEGERS:
        return None
    steps = _quantize(scale, zero, result) if quantizes else _dequantize(scale, zero)
    epilogue = Epilogue(steps, (Operand(shape, source),), 0)
    return IntegerLayer(ElementwiseWorkload(shape, result, epilogue))


def _quantize(scale: float, zero: float, dtype: str) -> tuple[Step, ...]:
    limits = np.iinfo(dtype)
    return _chain(
        ("divide", scale, (), "float32"),
        ("round", None, (), "float32"),
        ("add", float(zero), (), "float32"),
        ("clip", None, (float(limits.min), float(limits.max)), "float32"),
        ("narrow", None, (), dtype),
    )


def _dequantize(scale: float, zero: float) -> tuple[Step, ...]:
    return _chain(
        ("cast", None, (), "float32"),
        ("subtract", float(zero), (), "float32"),
        ("multiply", scale, (), "float32"),
    )


def _chain(*parts: tuple[str, float | None, tuple[float, ...], str]) -> tuple[Step, ...]:
    """Steps each of which takes the result before it, and perhaps a number."""
    value: Ref = ("operand", 0)
    steps = []
    for op, number, attrs, dtype in parts:
        args = (value,) if number is None else (value, ("const", number))
        steps.append(Step(op, args, attrs, dtype))
        value = ("value", len(steps) - 1)
    return tuple(steps)
