"""Nine networks whose graphs the onnx package ships, with random weights.

The graphs are real exports (Caffe and Caffe2, 2017) for the backend tests of ONNX; their weights
have been replaced by ConstantOfShape nodes. Here each such node becomes an initializer again.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from functools import partial
from importlib import resources

import numpy as np
import onnx
from onnx import numpy_helper

from benchmarks.zoo.builder import IR_VERSION
from benchmarks.zoo.calibrate import calibrate
from benchmarks.zoo.recipe import Recipe, random_image

_NETWORKS = {
    # The name, and that of the input.
    "bvlc_alexnet": "data_0",
    "densenet121": "data_0",
    "inception_v1": "data_0",
    "inception_v2": "data_0",
    "resnet50": "gpu_0/data_0",
    "shufflenet": "gpu_0/data_0",
    "squeezenet": "data_0",
    "vgg19": "data_0",
    "zfnet512": "gpu_0/data_0",
}


def _weight_roles(graph: onnx.GraphProto) -> Iterator[tuple[str, str]]:
    """Yield (tensor, role) for every tensor that holds weights."""
    readers = {name: node for node in graph.node for name in node.input}
    reshaped = {node.output[0]: node.input[0] for node in graph.node if node.op_type == "Reshape"}
    for node in graph.node:
        if node.op_type in ("Conv", "Gemm"):
            yield reshaped.get(node.input[1], node.input[1]), "weight"
            yield from ((name, "bias") for name in node.input[2:])
        elif node.op_type == "BatchNormalization":
            # Caffe keeps scale and bias in a layer of their own: Unsqueeze, then Mul or Add.
            affine = readers[node.output[0]].op_type != "Mul"
            yield node.input[1], "scale" if affine else "one"
            yield node.input[2], "bias" if affine else "zero"
            yield node.input[3], "zero"
            yield node.input[4], "one"
        elif node.op_type == "Unsqueeze":
            kind = readers[node.output[0]].op_type
            yield node.input[0], {"Mul": "scale", "Add": "bias"}[kind]


def _draw(rng: np.random.Generator, role: str, shape: tuple[int, ...]) -> np.ndarray:
    if role == "weight":
        value = rng.normal(0.0, np.sqrt(2.0 / np.prod(shape[1:])), shape)
    elif role == "scale":
        value = rng.uniform(0.5, 0.9, shape)
    elif role == "bias":
        value = rng.normal(0.0, 0.1, shape)
    else:
        value = np.full(shape, 1.0 if role == "one" else 0.0)
    return value.astype(np.float32)


def with_random_weights(model: onnx.ModelProto, rng: np.random.Generator) -> onnx.ModelProto:
    """Replace the ConstantOfShape weights of a light model by random initializers.

    Parameters
    ----------
    model : onnx.ModelProto
        A graph as shipped; changed in place.
    rng : numpy.random.Generator
        Source of the weights.

    Returns
    -------
    onnx.ModelProto
        `model`: convolutions and fully connected layers He-scaled, batch norms with scale 0.5 to
        0.9, biases of standard deviation 0.1.
    """
    graph = model.graph
    constants = {i.name: numpy_helper.to_array(i) for i in graph.initializer}
    shapes = {
        node.output[0]: tuple(int(d) for d in constants[node.input[0]])
        for node in graph.node
        if node.op_type == "ConstantOfShape"
    }
    # Small weights were left in the file: they are drawn again too, to match the others.
    shapes.update({k: v.shape for k, v in constants.items() if v.dtype == np.float32})

    kept = [node for node in graph.node if node.op_type != "ConstantOfShape"]
    del graph.node[:]
    graph.node.extend(kept)
    weights = {name: _draw(rng, role, shapes[name]) for name, role in _weight_roles(graph)}
    read = {name for node in kept for name in node.input}
    integers = {k: v for k, v in constants.items() if k in read and k not in weights}
    del graph.initializer[:]
    graph.initializer.extend(
        numpy_helper.from_array(value, name) for name, value in {**weights, **integers}.items()
    )
    inputs = [i for i in graph.input if i.name not in {*weights, *integers} and i.name in read]
    del graph.input[:]
    graph.input.extend(inputs)
    # From IR version 4 on initializers need not be listed among the inputs.
    model.ir_version = IR_VERSION
    return model


def _build(name: str) -> onnx.ModelProto:
    folder = resources.files("onnx.backend.test") / "data" / "light"
    model = onnx.load_model_from_string((folder / f"light_{name}.onnx").read_bytes())
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    with_random_weights(model, rng)
    return calibrate(model, {_NETWORKS[name]: random_image(rng)})


RECIPES = tuple(
    Recipe(
        name,
        f"{name} as the onnx package ships it, seeded random weights",
        partial(_build, name),
        lambda rng, tensor=tensor: {tensor: random_image(rng)},
    )
    for name, tensor in _NETWORKS.items()
)
