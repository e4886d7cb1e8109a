"""An ONNX model as a Relax module: read, prepare the graph, check operators, convert."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import tvm
from google.protobuf.message import DecodeError

from tvm_ext.errors import ModelError
from tvm_ext.frontend.onnx_graph import prepare_graph
from tvm_ext.frontend.onnx_importer import import_graph
from tvm_ext.frontend.onnx_scan import check_operators


def load_onnx(
    source: str | Path | onnx.ModelProto,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    params: Mapping[str, np.ndarray] | None = None,
) -> tvm.IRModule:
    """Convert an ONNX model; see `tvm_ext.frontend.load_model` for arguments and result."""
    model = source if isinstance(source, onnx.ModelProto) else read_onnx(Path(source))
    graph = prepare_graph(model, input_shapes or {}, params or {})
    check_operators(graph)
    return import_graph(graph)


def read_onnx(path: Path) -> onnx.ModelProto:
    """Read a model file and the external data beside it.

    Raises
    ------
    ModelError
        There is no such file, or it isn't a complete model.
    """
    try:
        # Without the format, the file's extension would choose among several text formats.
        model = onnx.load(path, format="protobuf")
    except FileNotFoundError as err:
        raise ModelError(f"{path}: no such file: {err.filename or path}") from err
    except DecodeError as err:
        raise ModelError(f"{path} isn't a complete ONNX file: {err}") from err
    except (OSError, ValueError, onnx.checker.ValidationError) as err:
        raise ModelError(f"{path} can't be read: {err}") from err
    # An empty file is a valid protobuf message, and so is a file cut between two fields.
    if not model.graph.output:
        raise ModelError(f"{path} isn't a complete ONNX file: its graph has no outputs")
    if not model.opset_import:
        raise ModelError(f"{path} isn't a complete ONNX file: it names no operator set")
    return model
