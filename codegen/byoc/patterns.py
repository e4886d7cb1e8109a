"""The operators that the accelerator takes: one table for the matcher and the docs' page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from tvm_ext.codegen.byoc import moves, pointwise, products
from tvm_ext.codegen.byoc.epilogue import Epilogue
from tvm_ext.codegen.byoc.graph import Graph
from tvm_ext.codegen.byoc.layer_builder import LayerBuilder
from tvm_ext.codegen.network_elementwise import (
    Abs,
    Add,
    LeakyRelu,
    Maximum,
    Minimum,
    Multiply,
    Requantize,
)
from tvm_ext.codegen.network_layers import Conv, Layer, MatMul
from tvm_ext.codegen.network_moves import Concat, Interleave, Reshape
from tvm_ext.codegen.network_pool import Pool

Build: TypeAlias = Callable[[Graph, Epilogue, LayerBuilder], None]


@dataclass(frozen=True)
class Pattern:
    """An operator between dequantised operands and the quantisation of its result.

    Attributes
    ----------
    operators : tuple of str
        In Relax, without the ``relax.`` prefix.
    onnx : str
        The ONNX operators that become it, quantised operators included.
    layer : type
        The layer that it becomes.
    needs : str
        What has to hold beside the limits, for the docs.
    build : callable
        Adds the layers; raises `Refused` with the reason where it can't.
    affine : bool
        Whether a bias or batch norm may follow.
    """

    operators: tuple[str, ...]
    onnx: str
    layer: type[Layer]
    needs: str
    build: Build
    affine: bool = False


_TWO = "two activations of one shape, or one of a value a channel"

PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        ("nn.conv2d",), "Conv, QLinearConv", Conv,
        "constant int8 or uint8 weights whose values less the zero point are within int8, scales "
        "per tensor or output channel; one group, or as many as channels on both sides",
        products.conv2d, affine=True,
    ),
    Pattern(
        ("matmul",), "Gemm, MatMul, QGemm, QLinearMatMul", MatMul,
        "(M, K) times constant (K, N); weights as for Conv, scales per tensor or column",
        products.matmul, affine=True,
    ),
    Pattern(
        ("nn.max_pool2d",), "MaxPool, GlobalMaxPool", Pool, "no dilation", moves.max_pool2d,
    ),
    Pattern(
        ("nn.avg_pool2d",),
        "AveragePool, GlobalAveragePool, QLinearAveragePool, QLinearGlobalAveragePool", Pool,
        "no dilation; at ties AveragePool may be one step off ONNX Runtime", moves.avg_pool2d,
    ),
    Pattern(("mean",), "ReduceMean", Pool, "over rows and columns", moves.mean),
    Pattern(("add",), "Add, QLinearAdd", Add, _TWO, pointwise.add),
    Pattern(("multiply",), "Mul, QLinearMul", Multiply, _TWO, pointwise.multiply),
    Pattern(
        ("maximum",), "Max", Maximum, "as Add, of one scale and zero point",
        pointwise.maximum,
    ),
    Pattern(
        ("minimum",), "Min", Minimum, "as Add, of one scale and zero point",
        pointwise.minimum,
    ),
    Pattern(("abs",), "Abs", Abs, "", pointwise.absolute),
    Pattern(
        ("nn.leakyrelu",), "LeakyRelu, QLinearLeakyRelu", LeakyRelu,
        "at ties it may be one step off ONNX Runtime", pointwise.leaky_relu
    ),
    Pattern(
        ("dequantize",),
        "Relu, Clip, HardSigmoid, Add, Sub, Mul and Div with one constant, "
        "DequantizeLinear before QuantizeLinear", Requantize,
        "constants are single values; with them it is an `Add` of the input to 0 times itself; "
        "where no two float32 numbers give all 256 results, one may be a step off ONNX Runtime",
        pointwise.requantize, affine=True,
    ),
    Pattern(("concat",), "Concat, QLinearConcat", Concat, "along axis 1", moves.concat),
    Pattern(
        ("image.resize2d",), "Resize, Upsample", Interleave,
        "nearest neighbour, by whole factors, asymmetric with floor or half_pixel",
        moves.resize2d,
    ),
    Pattern(
        ("reshape", "flatten", "squeeze", "expand_dims"), "Reshape, Flatten, Squeeze, Unsqueeze",
        Reshape, "the first axis stays; ranks 2 and 4", moves.reshape,
    ),
)  # fmt: skip

BY_OPERATOR = {name: pattern for pattern in PATTERNS for name in pattern.operators}
