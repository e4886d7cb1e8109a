"""Quantised operators on the CPU: found in the graph, kept together, read as kernels of integers.

The accelerator's matcher finds them, and so both compute the same bits.
"""

from tvm_ext.quantized.conversions import conversion
from tvm_ext.quantized.outline_quantized import OutlineQuantized, quantized_function
from tvm_ext.quantized.read_layer import IntegerLayer, integer_layer

__all__ = ["IntegerLayer", "OutlineQuantized", "conversion", "integer_layer", "quantized_function"]
