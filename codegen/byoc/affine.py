"""An operator of one activation as ``y = x * scale + offset``: an `Add` to 0 times itself.

Sums and products with constants have 256 results; what the model computes for each, roundings
included, is worked out first, and two float32 numbers are looked for that give all of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tvm_ext.codegen.arithmetic import add_registers, fused, min_misses
from tvm_ext.codegen.byoc.epilogue import Epilogue
from tvm_ext.codegen.byoc.factors import centred_range
from tvm_ext.codegen.byoc.graph import Graph, Quantized, Refused
from tvm_ext.codegen.byoc.layer_builder import LayerBuilder
from tvm_ext.codegen.network_elementwise import Add
from tvm_ext.codegen.network_layers import Pair, TensorSpec

_VALUES = np.arange(-128, 128)
_HALVINGS = 80


def add_affine(
    layers: LayerBuilder, x: Quantized, wanted: np.ndarray, scale: float, offset: float
) -> None:
    """The layer that computes `wanted`.

    Parameters
    ----------
    wanted : ndarray
        (256,): the int8 result of each int8 value from -128 on.
    scale, offset : float
        Where the search begins.

    Raises
    ------
    Refused
        They aren't finite.
    """
    if not np.isfinite([np.float32(scale), np.float32(offset)]).all():
        raise Refused(f"{scale} times it plus {offset}; allowed: finite numbers")
    scale, offset = affine_registers(np.clip(wanted, *layers.clamp), layers.clamp, scale, offset)
    name = layers.read(x)
    layers.add(
        Add, (name, name), layers.name, scales=(scale, 0.0), offset=offset, clamp=layers.clamp
    )


def affine_registers(
    wanted: np.ndarray, clamp: Pair, scale: float, offset: float
) -> tuple[float, float]:
    """float32 numbers with which ``clip(rne(x * scale + offset), *clamp)`` is `wanted`.

    The given ones, the nearest offset, or the numbers in the middle of all that give it: those
    with the fewest of the 256 results that are a step off, nearly always none.
    """

    def misses(scale: float, offset: float) -> int:
        found = np.rint(fused(_VALUES, scale, offset))
        return int((np.clip(found, *clamp) != wanted).sum())

    start = float(np.float32(scale))
    near = float(min_misses(np.float32(offset), lambda x: misses(start, float(x))))
    if misses(start, near) == 0:
        return start, near
    return min(((start, near), _middle(wanted, clamp, scale)), key=lambda pair: misses(*pair))


def _middle(wanted: np.ndarray, clamp: Pair, scale: float) -> tuple[float, float]:
    """The scale with the widest range of offsets that give `wanted`, and the range's middle.

    A result at a limit is bounded on one side alone. The width is concave in the scale.
    """
    low = np.where(wanted > clamp[0], wanted - 0.5, -np.inf)
    high = np.where(wanted < clamp[1], wanted + 0.5, np.inf)

    def ends(scale: float) -> tuple[float, float]:
        return float((low - scale * _VALUES).max()), float((high - scale * _VALUES).min())

    def width(scale: float) -> float:
        first, last = ends(scale)
        return last - first

    left, right = scale - abs(scale) / 16 - 1 / 256, scale + abs(scale) / 16 + 1 / 256
    for _ in range(_HALVINGS):
        third = (right - left) / 3
        if width(left + third) < width(right - third):
            left += third
        else:
            right -= third
    best = float(np.float32((left + right) / 2))
    bounds = [end for end in ends(best) if np.isfinite(end)]
    return best, float(np.float32(np.mean(bounds))) if bounds else 0.0


def add_constants(graph: Graph, epilogue: Epilogue, layers: LayerBuilder, x: Quantized) -> None:
    """Sums and products of an activation with single constants, as those of hard swish.

    One constant that is quantised itself: ONNX Runtime makes it a ``QLinearAdd`` or
    ``QLinearMul``, with their roundings. Else it computes on real values, each step in float32.

    Raises
    ------
    Refused
    """
    spec, y = layers.tensor(x), layers.tensor(layers.output)
    factor, shift = 1.0, 0.0
    for name, operand in epilogue.steps:
        value = _single(graph, operand)
        if name in ("add", "subtract"):
            shift += value if name == "add" else -value
        elif name == "multiply" or value:
            value = value if name == "multiply" else 1 / value
            factor, shift = factor * value, shift * value
        else:
            raise Refused("a division by 0 behind it; allowed: other constants")
    scale = factor * spec.scale / y.scale
    offset = y.zero_point + shift / y.scale - spec.zero_point * scale
    constant = _quantized(graph, epilogue)
    if constant is None:
        wanted = _real_results(graph, epilogue, spec, y)
    else:
        wanted = _integer_results(epilogue.steps[0][0], spec, constant, y, x.shift)
    add_affine(layers, x, wanted, scale, offset)


def _single(graph: Graph, operand: Any) -> float:
    constant = graph.real(operand)
    assert constant is not None
    if constant.size != 1:
        raise Refused(f"a constant of shape {constant.shape} behind it; allowed: one value")
    return float(constant.reshape(()))


def _real_results(graph: Graph, epilogue: Epilogue, x: TensorSpec, y: TensorSpec) -> np.ndarray:
    """What dequantising, the steps, the clamp and quantising give, in float32."""
    real = centred_range(x).astype("float32") * np.float32(x.scale)
    for name, operand in epilogue.steps:
        real = _STEPS[name](real, np.float32(_single(graph, operand)))
    real = np.clip(real, np.float32(epilogue.low), np.float32(epilogue.high))
    return np.asarray(np.rint(real / np.float32(y.scale)) + y.zero_point)


_STEPS = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide,
}  # fmt: skip


def _quantized(graph: Graph, epilogue: Epilogue) -> tuple[int, TensorSpec] | None:
    """The integer of the only constant and its quantisation; None where that isn't the case."""
    if len(epilogue.steps) != 1 or epilogue.steps[0][0] not in ("add", "multiply"):
        return None
    call = graph.value(epilogue.steps[0][1])
    if graph.op(call) != "relax.dequantize":
        return None
    integer, scale, zero = (graph.constant(argument) for argument in call.args)
    assert integer is not None and scale is not None and zero is not None
    shift = 128 if integer.dtype == "uint8" else 0
    spec = TensorSpec(
        "constant", (1, 1), "int8", float(scale.reshape(())), int(zero.reshape(())) - shift
    )
    return int(integer.reshape(())) - shift, spec


def _integer_results(
    name: str, x: TensorSpec, constant: tuple[int, TensorSpec], y: TensorSpec, shift: int
) -> np.ndarray:
    """What ONNX Runtime's ``QLinearAdd`` or ``QLinearMul`` gives for all values of one operand."""
    value, spec = constant
    if name == "multiply":
        scale = np.float32(x.scale) * np.float32(spec.scale) / np.float32(y.scale)
        products = centred_range(x) * (value - spec.zero_point)
        return np.asarray(np.rint(fused(products, scale, y.zero_point + shift)) - shift)
    scales, offset = add_registers(x, spec, y, shift)
    inner = fused(np.asarray(value + shift), scales[1], offset)
    return np.asarray(np.rint(fused(_VALUES + shift, scales[0], inner)) - shift)
