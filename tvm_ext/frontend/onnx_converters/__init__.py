"""Our ONNX converters, one operator family a file; importing this package registers them.

An operator is here when TVM's importer lacks it, gets it wrong, or emits run-time work for what is
known at import (a reshaped bias, a transposed weight).
"""

from tvm_ext.frontend.onnx_converters import (
    activations,
    convolution,
    elementwise,
    indexing,
    linear,
    normalization,
    padding,
    pooling,
    quantization,
    quantized_contrib,
    recurrent,
    reductions,
    resize,
    softmax,
    space_depth,
    variadic,
)

__all__ = [
    "activations",
    "convolution",
    "elementwise",
    "indexing",
    "linear",
    "normalization",
    "padding",
    "pooling",
    "quantization",
    "quantized_contrib",
    "recurrent",
    "reductions",
    "resize",
    "softmax",
    "space_depth",
    "variadic",
]
