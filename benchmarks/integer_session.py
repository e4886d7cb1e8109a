"""ONNX Runtime on a quantised model, in integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx


def integer_session(model: onnx.ModelProto, disabled: Sequence[str] = ()) -> Any:
    """Return a session of ONNX Runtime's CPU operators, int8 ones included.

    By default some operators of QDQ models on int8 run on real values on x86-64.

    Parameters
    ----------
    model : onnx.ModelProto
    disabled : sequence of str
        Optimisers to leave out.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    graph = model.graph
    kinds = [x.type.tensor_type.elem_type for x in graph.input]
    if onnx.TensorProto.UINT8 in (*kinds, *(x.data_type for x in graph.initializer)):
        # Without VNNI, products of uint8 with int8 would be summed in 16 bits, saturated.
        options.add_session_config_entry("session.x64quantprecision", "1")
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, ["CPUExecutionProvider"],
        disabled_optimizers=list(disabled),
    )  # fmt: skip
