"""A loaded model as an ONNX file, for tools that read nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import tvm
from onnx import helper
from tvm import relax

import tvm_ext.frontend.onnx_norm_writers
import tvm_ext.frontend.onnx_pool_writers
import tvm_ext.frontend.onnx_writers  # noqa: F401  (all register what writes each operator)
from tvm_ext.errors import UnsupportedOperatorsError
from tvm_ext.frontend.onnx_writer import GraphWriter
from tvm_ext.frontend.relax import OUTPUT_NAMES
from tvm_ext.passes import dataflow as df

OPSET = 18
"""The version of ONNX's operators that files are written in."""

_IR_VERSION = 9
_REMEDY = "write the model as .json, which keeps every operator of Relax's"


def to_onnx(mod: tvm.IRModule) -> onnx.ModelProto:
    """Write a module of `tvm_ext.load_model` as an ONNX model.

    Parameters
    ----------
    mod : tvm.IRModule
        With static shapes and a function ``main`` without control flow; names of its parameters
        and the attribute ``tvm_ext.output_names`` name the model's ends.

    Returns
    -------
    onnx.ModelProto
        Opset 18, checked by ``onnx.checker``.

    Raises
    ------
    UnsupportedOperatorsError
        Operators that ONNX lacks or that aren't written yet, all of them with how often they occur.
    """
    main = mod["main"]
    pairs = [(b.var, b.value) for block in main.body.blocks for b in block.bindings]
    used = _used(main.body.body, [value for _, value in pairs])
    missing: dict[str, list[str]] = {}
    graph = GraphWriter()
    for param in main.params:
        graph.names[param] = (param.name,)
    for var, value in pairs:
        if var in used and not graph.write(var, value):
            name = df.op_name(value) or type(value).__name__
            missing.setdefault(name.removeprefix("relax."), []).append(str(var.name))
            # What reads it may be missing, too.
            graph.names[var] = (str(var.name),) * len(_types(var.ty))
    if missing:
        raise UnsupportedOperatorsError(missing, _REMEDY)
    outputs = [str(name) for name in main.attrs[OUTPUT_NAMES]]
    for name, result in zip(outputs, graph.values(main.body.body), strict=True):
        graph.nodes.append(helper.make_node("Identity", [result], [name]))
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "main",
            [_info(param.name, param.ty) for param in main.params],
            [_info(name, ty) for name, ty in zip(outputs, _types(main.ret_ty), strict=True)],
            graph.initializers,
        ),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=_IR_VERSION,
        producer_name="tvm_ext",
    )
    onnx.checker.check_model(model)
    return model


def _types(ty: Any) -> list[Any]:
    """Of a tuple's fields, or of the one tensor."""
    return list(ty.fields) if isinstance(ty, relax.TupleType) else [ty]


def _info(name: str, ty: Any) -> onnx.ValueInfoProto:
    dtype = helper.np_dtype_to_tensor_dtype(np.dtype(str(ty.dtype.dtype)))
    return helper.make_tensor_value_info(name, dtype, [int(n) for n in ty.shape])


def _used(result: Any, values: Sequence[Any]) -> set[relax.Var]:
    """The variables that the result needs, directly or not."""
    used: set[relax.Var] = set()

    def visit(expr: Any) -> None:
        if isinstance(expr, relax.Var):
            used.add(expr)

    for value in (result, *values):
        relax.analysis.post_order_visit(value, visit)
    return used
