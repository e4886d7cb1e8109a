"""The engines to compare with, each as something to call."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Inputs = dict[str, np.ndarray]
Engine = Callable[[], Any]


def onnxruntime_engine(path: Path, inputs: Inputs, threads: int) -> Engine:
    """Make a callable that runs a model in ONNX Runtime on the CPU.

    Parameters
    ----------
    path : pathlib.Path
        The ONNX file.
    inputs : dict[str, numpy.ndarray]
        What every call runs on.
    threads : int
        Intra-operator threads.

    Returns
    -------
    Callable[[], list[numpy.ndarray]]
        Returns all outputs.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, inputs)


def openvino_engine(path: Path, inputs: Inputs, threads: int) -> Engine:
    """Make a callable that runs a model in OpenVINO on the CPU, in float32, for latency.

    Parameters
    ----------
    path : pathlib.Path
        The ONNX file.
    inputs : dict[str, numpy.ndarray]
        What every call runs on.
    threads : int
        Inference threads.

    Returns
    -------
    Callable[[], list[numpy.ndarray]]
        Returns all outputs, as views that the next call overwrites.
    """
    import openvino

    core = openvino.Core()
    compiled = core.compile_model(
        core.read_model(str(path)),
        "CPU",
        {
            "INFERENCE_NUM_THREADS": threads,
            "INFERENCE_PRECISION_HINT": "f32",
            "PERFORMANCE_HINT": "LATENCY",
        },
    )
    request = compiled.create_infer_request()

    def run() -> list[np.ndarray]:
        results = request.infer(inputs, share_inputs=True, share_outputs=True)
        return [results[output] for output in compiled.outputs]

    return run
