"""Readers of models: ONNX files, ``torch.export`` programs and Relax modules become an IRModule."""

from tvm_ext.frontend.load import load_model
from tvm_ext.frontend.onnx_registry import register_onnx_converter

__all__ = ["load_model", "register_onnx_converter"]
