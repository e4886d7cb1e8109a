"""Our converters of ATen operators, one family a file; importing this package registers them.

An operator is here when TVM's importer lacks it, gets it wrong, or emits a slow form. Most hand
over to the ONNX converter of the same operator: later passes then meet one form only.
"""

from tvm_ext.frontend.torch_converters import (
    attention,
    convolution,
    elementwise,
    indexing,
    linear,
    normalization,
    pooling,
    recurrent,
    reductions,
    resize,
    sampling,
    scattering,
)

__all__ = [
    "attention",
    "convolution",
    "elementwise",
    "indexing",
    "linear",
    "normalization",
    "pooling",
    "recurrent",
    "reductions",
    "resize",
    "sampling",
    "scattering",
]
