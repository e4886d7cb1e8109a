"""A small network by hand: as an expression, as a graph of several versions, and as text."""

import numpy as np

from tvm_ext.frontend.relay.ast import (
    Call,
    Constant,
    Function,
    Op,
    RelayModule,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Var,
)

from .graphs import SavedGraph, scalar

SHIFT = np.array([[[1.5]], [[-2.0]], [[0.25]], [[3.0]]], "float32")
MAP = (1, 4, 4, 4)
HALF = (1, 2, 4, 4)
PARAMS = {
    "data": (1, 2, 4, 4),
    "conv.weight": (4, 1, 3, 3),
    "gamma": (4,),
    "beta": (4,),
    "mean": (4,),
    "var": (4,),
}


def block_module():
    """The network as `ast` has it, all attributes written out."""

    def tensor(shape):
        return TensorType(shape, "float32")

    params = [Var(name, tensor(shape)) for name, shape in PARAMS.items()]
    conv = Call(
        Op("nn.conv2d"),
        tuple(params[:2]),
        {
            "strides": [1, 1],
            "padding": [1, 1, 1, 1],
            "dilation": [1, 1],
            "channels": 4,
            "kernel_size": [3, 3],
            "groups": 2,
            "data_layout": "NCHW",
            "kernel_layout": "OIHW",
            "out_layout": "",
            "out_dtype": "",
        },
        tensor(MAP),
    )
    norm = Call(
        Op("nn.batch_norm"),
        (conv, *params[2:]),
        {"axis": 1, "epsilon": 0.001, "center": True, "scale": True},
        TupleType((tensor(MAP), tensor((4,)), tensor((4,)))),
    )
    normed = TupleGetItem(norm, 0)
    split = Call(Op("split"), (normed,), {"indices_or_sections": 2, "axis": 1})
    swapped = Tuple((TupleGetItem(split, 1), TupleGetItem(split, 0)))
    joined = Call(Op("concatenate"), (swapped,), {"axis": 1}, tensor(MAP))
    shifted = Call(Op("add"), (joined, Constant(SHIFT)), {}, tensor(MAP))
    total = Call(Op("add"), (normed, shifted), {}, tensor(MAP))
    halved = Call(Op("multiply"), (total, Constant(scalar(0.5))), {}, tensor(MAP))
    pooled = Call(
        Op("nn.max_pool2d"),
        (halved,),
        {
            "pool_size": [2, 2],
            "strides": [2, 2],
            "dilation": [1, 1],
            "padding": [0, 0, 0, 0],
            "ceil_mode": False,
            "layout": "NCHW",
            "out_layout": "",
        },
        tensor((1, 4, 2, 2)),
    )
    return RelayModule({"main": Function(tuple(params), pooled, {}, tensor((1, 4, 2, 2)))})


def block_json(version):
    """The network as a version of TVM saves it."""
    g = SavedGraph(version)
    params = [g.var(name, g.tensor_type(shape)) for name, shape in PARAMS.items()]
    whole, half, four = g.tensor_type(MAP), g.tensor_type(HALF), g.tensor_type((4,))
    conv = g.record(
        "Conv2DAttrs",
        strides=g.integers(1, 1),
        padding=g.integers(1, 1, 1, 1),
        dilation=g.integers(1, 1),
        groups=2,
        channels=g.integer(4),
        kernel_size=g.integers(3, 3),
        data_layout=g.text("NCHW"),
        kernel_layout=g.text("OIHW"),
        out_layout=g.text(""),
        out_dtype="",
    )
    conv = g.call("nn.conv2d", params[:2], conv, whole)
    norm = g.record("BatchNormAttrs", axis=1, epsilon="0.001", center=1, scale=1)
    norm = g.call("nn.batch_norm", [conv, *params[2:]], norm, g.tuple_type([whole, four, four]))
    normed = g.field(norm, 0)
    split = g.record("SplitAttrs", indices_or_sections=g.box(2), axis=1)
    split = g.call("split", [normed], split, g.tuple_type([half, half]))
    swapped = g.tuple([g.field(split, 1), g.field(split, 0)])
    joined = g.call("concatenate", [swapped], g.record("ConcatenateAttrs", axis=1), whole)
    shifted = g.call("add", [joined, g.constant(SHIFT)], 0, whole)
    total = g.call("add", [normed, shifted], 0, whole)
    halved = g.call("multiply", [total, g.constant(scalar(0.5))], 0, whole)
    pool = g.record(
        "MaxPool2DAttrs",
        pool_size=g.integers(2, 2),
        strides=g.integers(2, 2),
        dilation=g.integers(1, 1),
        padding=g.integers(0, 0, 0, 0),
        ceil_mode=0,
        layout=g.text("NCHW"),
        out_layout=g.text(""),
    )
    out = g.tensor_type((1, 4, 2, 2))
    return g.main(params, g.call("nn.max_pool2d", [halved], pool, out), out)
