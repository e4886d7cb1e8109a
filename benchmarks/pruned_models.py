"""Models of the zoo with zeros in their weights, as ONNX files in the zoo's cache."""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx import numpy_helper

from benchmarks import magnitude, zoo

# Part of the cached files' names: raise it when pruning changes, so that old files go unused.
_REVISION = 2
# Convolutions of so few channels see an image: they are small, and no network stands it.
_IMAGE_CHANNELS = 4
_WEIGHTS = {"Conv": (1,), "LSTM": (1, 2)}


def path(name: str, scheme: str, density: float) -> Path:
    """Return a pruned model's ONNX file, making it first when it is not in the cache.

    Parameters
    ----------
    name : str
        A model of the zoo.
    scheme : str
        A key of `magnitude.SCHEMES`.
    density : float
        Share of each pruned layer's weights that stays.

    Returns
    -------
    pathlib.Path
        The model as `prune_model` leaves it.
    """
    dense = zoo.path(name)
    target = dense.with_name(f"{dense.stem}-{scheme}-{density}-p{_REVISION}.onnx")
    if not target.exists():
        model = onnx.load(dense)
        prune_model(model, scheme, density)
        zoo.write_atomically(target, model.SerializeToString())
    return target


def prune_model(model: onnx.ModelProto, scheme: str, density: float) -> None:
    """Prune each layer by itself, in place, but for what `tvm_ext.prune` excludes by default.

    That is: all convolutions but those of images, all LSTMs, and all dense layers (Gemm) but the
    last one.

    Raises
    ------
    ValueError
        The scheme or the density is wrong, or the model has no such layer.
    """
    names = prunable_weights(model.graph)
    if not names:
        raise ValueError(f"{model.graph.name} has no layer to prune")
    for initializer in model.graph.initializer:
        if initializer.name in names:
            value = numpy_helper.to_array(initializer)
            # An LSTM's weights have the directions before the rows.
            rows = value.reshape(-1, *value.shape[2:]) if value.ndim == 3 else value
            pruned = magnitude.prune(rows, scheme, density).reshape(value.shape)
            initializer.CopyFrom(numpy_helper.from_array(pruned, initializer.name))


def prunable_weights(graph: onnx.GraphProto) -> set[str]:
    """Names of the weights that `prune_model` prunes."""
    shapes = {i.name: tuple(i.dims) for i in graph.initializer}
    names = {node.input[1] for node in _dense_layers(graph)[:-1]}
    for node in graph.node:
        group = next((a.i for a in node.attribute if a.name == "group"), 1)
        for position in _WEIGHTS.get(node.op_type, ()):
            name = node.input[position]
            image = node.op_type == "Conv" and shapes[name][1] * group < _IMAGE_CHANNELS
            if not image:
                names.add(name)
    return names


def _dense_layers(graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    """Products with weights whose rows are the filters, in the graph's order."""
    weights = {i.name for i in graph.initializer}
    return [
        node
        for node in graph.node
        if node.op_type == "Gemm"
        and node.input[1] in weights
        and any(a.name == "transB" and a.i for a in node.attribute)
    ]
