"""The zeros of a pruned module, put into the ONNX model that it was loaded from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import tvm
import tvm_ffi
from onnx import numpy_helper
from tvm import relax

from tvm_ext.errors import PruningError
from tvm_ext.frontend.onnx import load_onnx, read_onnx
from tvm_ext.frontend.onnx_graph import tensor_array
from tvm_ext.passes.pruning.prunable import prunables

_REMEDY = "leave the layer out, or write the module by tvm.ir.save_json"


@dataclass(frozen=True)
class _Change:
    """A layer's weights before and after, in the form of a `Prunable`."""

    layer: str
    before: np.ndarray
    after: np.ndarray


def pruned_onnx(
    model: str | Path | onnx.ModelProto,
    pruned: tvm.IRModule,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
) -> onnx.ModelProto:
    """Write a pruned module as the ONNX model that it was loaded from, with zeros in the weights.

    The graph stays as it is: its nodes and names, recurrent layers as one node, dimensions that are
    open. Where a layer's weights are is found by their values, so that it doesn't matter how they
    were transposed or cut on the way into the module; what was written is then loaded and compared
    with `pruned`.

    Parameters
    ----------
    model : str, Path or onnx.ModelProto
        The model as it was before; it isn't changed.
    pruned : tvm.IRModule
        What `tvm_ext.prune` has made of it by a `Scheme`. Removed channels need another graph,
        which `tvm_ext.frontend.onnx_export.to_onnx` writes.
    input_shapes : Mapping[str, Sequence[int]], optional
        Those that the model was pruned with.

    Returns
    -------
    onnx.ModelProto
        Dense, with the external data inside.

    Raises
    ------
    PruningError
        The module isn't the model with zeros in its weights; or the model can't hold them, since
        the weights of a layer are computed at import, or are read by something else, too.
    ModelError, InputShapeError, UnsupportedOperatorsError
        The model can't be loaded.
    """
    source = model if isinstance(model, onnx.ModelProto) else read_onnx(Path(model))
    changes = _changes(load_onnx(source, input_shapes), pruned)
    written = onnx.ModelProto()
    written.CopyFrom(source)
    holders: dict[str, str] = {}
    for name, tensor in _tensors(written.graph):
        if len(tensor.dims) < 2:
            continue
        array = tensor_array(name, tensor).copy()
        found = [change.layer for change in changes if _replace(array, change)]
        if found:
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
            holders.update(dict.fromkeys(found, name))
    for change in changes:
        if change.layer not in holders:
            raise PruningError(
                f"layer {change.layer}: its weights aren't in the model as they are, but are "
                f"computed from others; {_REMEDY}"
            )
    _check_same(written, pruned, input_shapes, holders)
    return written


def _changes(loaded: tvm.IRModule, pruned: tvm.IRModule) -> list[_Change]:
    """The layers whose weights have changed."""
    # By the variables that use them: two layers that are all zeros now are one.
    weights = {str(v.name): x.weights for x in prunables(pruned) for v, _ in x.uses}
    changes = []
    for layer in prunables(loaded):
        after = weights.get(str(layer.var.name))
        if after is None or after.shape != layer.weights.shape:
            there = "none" if after is None else f"weights of shape {after.shape}"
            raise PruningError(
                f"layer {layer.name}: the model has weights of shape {layer.weights.shape}, the "
                f"pruned module {there}; a module without channels of the model's needs another "
                "graph"
            )
        if not np.array_equal(after, layer.weights):
            changes.append(_Change(layer.name, layer.weights, after))
    return changes


def _tensors(graph: onnx.GraphProto) -> Iterator[tuple[str, onnx.TensorProto]]:
    """Every tensor of a graph, by the name that nodes read it under."""
    for tensor in graph.initializer:
        yield tensor.name, tensor
    for node in graph.node:
        for attribute in node.attribute:
            if node.op_type == "Constant" and attribute.name == "value":
                yield node.output[0], attribute.t


def _replace(array: np.ndarray, change: _Change) -> bool:
    """Put a layer's new weights in place of the old ones, if `array` has them."""
    before, count = change.before, len(change.before)
    for view in _views(array, before.ndim):
        if view.shape[1:] != before.shape[1:] or len(view) < count:
            continue
        firsts = view.reshape(len(view), -1)[:, 0]
        for start in np.flatnonzero(firsts == before.flat[0]):
            rows = view[start : start + count]
            if np.array_equal(rows, before):
                rows[...] = change.after
                return True
    return False


def _views(array: np.ndarray, rank: int) -> Iterator[np.ndarray]:
    """The forms that a tensor's values may have as weights of this rank: filters come first."""
    if array.ndim == rank:
        yield array
    if rank == 2 and array.ndim == 2:
        yield array.T
    # Recurrent layers have (directions, gates, inputs), and a layer some gates of one direction.
    if rank == 2 and array.ndim == 3:
        yield array.reshape(-1, array.shape[-1])


def _check_same(
    written: onnx.ModelProto,
    pruned: tvm.IRModule,
    input_shapes: Mapping[str, Sequence[int]] | None,
    holders: Mapping[str, str],
) -> None:
    """Refuse a model that isn't the pruned module; `holders` are the tensors by layer."""
    clean = relax.transform.DeadCodeElimination()
    if tvm_ffi.structural_equal(clean(load_onnx(written, input_shapes)), clean(pruned)):
        return
    readers = Counter(name for node in written.graph.node for name in set(node.input))
    shared = [f"{name} of layer {x}" for x, name in holders.items() if readers[name] > 1]
    raise PruningError(
        "with zeros in it, the model isn't the pruned module: other operators read "
        f"{', '.join(shared) or 'the weights'}, too; {_REMEDY}"
    )
