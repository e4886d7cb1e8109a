"""Tiny layers and their tensor programs, and numpy's answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tvm
from tvm import relax
from tvm.s_tir import Schedule

from tests.passes.relax_models import array, const, module
from tests.schedules.kernels import HOST
from tvm_ext.layers import Layer, layers
from tvm_ext.pipeline import graph_pipeline
from tvm_ext.schedules.tuned import trace_text
from tvm_ext.transfer.tensor_program import LayerProgram, tensor_program
from tvm_ext.transfer.trace_template import TraceTemplate
from tvm_ext.transfer.tune_space import tune_context
from tvm_ext.transfer.tune_store import workload_key
from tvm_ext.transfer.tuned_record import TunedRecord

EPILOGUES = {
    "add": lambda y, c: relax.op.add(y, const(array(7, 1, c, 1, 1))),
    "relu": lambda y, c: relax.op.nn.relu(y),
    "sigmoid": lambda y, c: relax.op.sigmoid(y),
}


def layers_of(body: Any, **inputs: tuple[int, ...]) -> list[Layer]:
    """The layers of a small module."""
    return layers(graph_pipeline()(module(inputs, body)))


def conv_layer(
    channels: int = 8, filters: int = 16, size: int = 8, kernel: int = 3, stride: int = 1,
    epilogue: Sequence[str] = ("add", "relu"), groups: int = 1,
) -> Layer:  # fmt: skip
    """A convolution of (1, channels, size, size) with what follows it."""

    def body(emit: Any, x: Any) -> Any:
        weight = const(array(3, filters, channels // groups, kernel, kernel))
        y = relax.op.nn.conv2d(x, weight, strides=stride, padding=kernel // 2, groups=groups)
        for name in epilogue:
            y = EPILOGUES[name](emit(y), filters)
        return y

    (layer,) = layers_of(body, x=(1, channels, size, size))
    return layer


def matmul_layer(rows: int = 32, columns: int = 32, depth: int = 32) -> Layer:
    """A product with a constant."""

    def body(emit: Any, x: Any) -> Any:
        return relax.op.matmul(x, const(array(4, depth, columns)))

    (layer,) = layers_of(body, x=(rows, depth))
    return layer


def program(layer: Layer) -> LayerProgram:
    """Its tensor program, which it must have."""
    made = tensor_program(layer)
    assert isinstance(made, LayerProgram), made
    return made


def conv(*args: Any, **options: Any) -> LayerProgram:
    """The tensor program of `conv_layer`."""
    return program(conv_layer(*args, **options))


def run(function: Any, arrays: Sequence[np.ndarray], shape: Sequence[int]) -> np.ndarray:
    """Compile and run a function; what it doesn't write stays NaN."""
    library = tvm.compile(tvm.IRModule({"main": function}), target=HOST.tvm)
    out = tvm.runtime.tensor(np.full(shape, np.nan, "float32"))
    library["main"](*(tvm.runtime.tensor(np.asarray(a)) for a in arrays), out)
    return np.asarray(out.numpy())


def numpy_conv(
    x: np.ndarray, weight: np.ndarray, stride: int, pad: int, epilogue: Sequence[str],
    bias: np.ndarray | None = None,
) -> np.ndarray:  # fmt: skip
    """The convolution and its epilogue in float64."""
    x = np.pad(x.astype("float64"), ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    k = weight.shape[2]
    windows = np.lib.stride_tricks.sliding_window_view(x, (k, k), axis=(2, 3))
    y = np.einsum("nchwij,fcij->nfhw", windows[:, :, ::stride, ::stride], weight.astype("float64"))
    for name in epilogue:
        if name == "add":
            assert bias is not None
            y = y + bias
        else:
            y = np.maximum(y, 0) if name == "relu" else 1 / (1 + np.exp(-y))
    return y


def sketches(made: LayerProgram) -> list[Schedule]:
    """The postprocessed schedules that MetaSchedule draws for a program, with seeded decisions."""
    function = made.workload.function
    return [
        TraceTemplate.of(s.trace, function).apply(function, HOST)
        for s in tune_context(function, HOST).generate_design_space()
    ]


def record(made: LayerProgram, seconds: float, number: int = -1) -> TunedRecord:
    """A record of one of a program's sketches."""
    function = made.workload.function
    trace = trace_text(sketches(made)[number].trace)
    return TunedRecord(function, workload_key(function), trace, seconds, "here")
