"""The walk over an ONNX graph that emits one Relax function.

Every value is either known at import (a numpy array) or a Relax variable. Nodes that only depend on
known values are evaluated, so shape arithmetic never reaches Relax; the others go to a converter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np
import onnx
import tvm
from tvm import relax

import tvm_ext.frontend.onnx_converters  # noqa: F401  (registers our converters)
from tvm_ext.errors import ModelError
from tvm_ext.frontend.emit import emit_main, tensors_of
from tvm_ext.frontend.onnx_converters.values import const
from tvm_ext.frontend.onnx_fold import can_fold, fold, fold_inputs
from tvm_ext.frontend.onnx_graph import Graph, graph_initializers, tensor_array
from tvm_ext.frontend.onnx_node import attributes, convert_node, describe
from tvm_ext.frontend.onnx_scan import check_nodes

# Their single output is a tuple of tensors, which must not be spread over several outputs.
_SEQUENCE_OPS = frozenset(
    {
        "SequenceConstruct",
        "SequenceEmpty",
        "SequenceErase",
        "SequenceInsert",
        "SplitToSequence",
    }
)


def import_graph(graph: Graph) -> tvm.IRModule:
    """Convert a prepared graph.

    Parameters
    ----------
    graph : Graph
        A graph that passed `check_operators`.

    Returns
    -------
    tvm.IRModule
        One Relax function, ``main``.

    Raises
    ------
    ModelError
        A node reads a value that nothing produces, or its conversion fails.
    """
    importer = _Importer(graph)

    def convert() -> list[tuple[str, relax.Expr]]:
        importer.convert_graph(graph)
        return [(name, importer.expr(name, "the graph's output")) for name in graph.outputs]

    return emit_main(importer.bb, importer.params, convert)


class _Importer:
    def __init__(self, graph: Graph) -> None:
        self.bb = relax.BlockBuilder()
        self.opsets = graph.opsets
        self.initializers = graph.initializers
        self.known: dict[str, np.ndarray] = {}
        self.exprs: dict[str, relax.Expr] = {
            i.name: relax.Var(i.name, relax.TensorType(i.shape, i.dtype)) for i in graph.inputs
        }
        self.params = tuple(self.exprs.values())

    def array(self, name: str) -> np.ndarray | None:
        """Return the value of a name that is known at import, or None."""
        if name not in self.known and name in self.initializers:
            self.known[name] = tensor_array(name, self.initializers[name])
        return self.known.get(name)

    def expr(self, name: str, reader: str) -> relax.Expr:
        """Return a value as a Relax expression; equal names share one constant."""
        if name not in self.exprs:
            array = self.array(name)
            if array is None:
                raise ModelError(f"{reader} reads {name!r}, which nothing in the model produces")
            self.exprs[name] = const(array)
            if name in self.initializers:
                # The constant is a copy; `array` can make another of a large weight if need be.
                del self.known[name]
        return self.exprs[name]

    def convert_graph(self, graph: Graph) -> None:
        """Convert all nodes, letting go of each value after the last node that reads it.

        A converter often replaces a weight (it transposes a matrix): keeping the weight until the
        end would double the memory that a model needs.
        """
        last = {name: i for i, node in enumerate(graph.nodes) for name in fold_inputs(node)}
        for i, node in enumerate(graph.nodes):
            self.convert_nodes([node])
            for name in fold_inputs(node):
                if last[name] == i and name not in graph.outputs:
                    self.known.pop(name, None)
                    self.exprs.pop(name, None)

    def convert_nodes(self, nodes: Iterable[onnx.NodeProto]) -> None:
        for node in nodes:
            if not self._evaluate(node):
                self._convert(node)

    def _evaluate(self, node: onnx.NodeProto) -> bool:
        """Handle a node that needs no Relax operator; return whether it was one."""
        if not can_fold(node):
            return False
        if node.op_type == "If" and self.array(node.input[0]) is not None:
            self._inline_branch(node)
            return True
        if node.op_type == "Identity":
            name = node.input[0]
            if self.array(name) is None:
                self.exprs[node.output[0]] = self.expr(name, describe(node))
            else:
                self.known[node.output[0]] = self.known[name]
            return True
        if node.op_type in ("Shape", "Size"):
            array = self.array(node.input[0])
            if array is None:
                shape = self.expr(node.input[0], describe(node)).ty.shape
                shape = tuple(int(d) for d in shape)
            else:
                shape = array.shape
            attrs = attributes(node)
            dims = shape[attrs.get("start", 0) : attrs.get("end", len(shape))]
            value = np.prod(shape, dtype="int64") if node.op_type == "Size" else dims
            self.known[node.output[0]] = np.asarray(value, "int64")
            return True
        names = fold_inputs(node)
        if not all(name in self.known or name in self.initializers for name in names):
            return False
        values = {name: self.array(name) for name in names}
        self.known.update(fold(node, values, self.opsets[""]))
        return True

    def _inline_branch(self, node: onnx.NodeProto) -> None:
        """Replace an ``If`` whose condition is known by the branch that it takes."""
        taken = "then_branch" if self.array(node.input[0]).item() else "else_branch"
        branch = next(a.g for a in node.attribute if a.name == taken)
        # Inner names may repeat those of another branch, so they live in a scope of their own.
        outer = dict(self.known), dict(self.exprs), self.initializers
        self.initializers = {**self.initializers, **graph_initializers(branch)}
        check_nodes(branch.node, [*self.known, *self.initializers])
        self.convert_nodes(branch.node)
        results = [
            (self.array(v.name), None)
            if self.array(v.name) is not None
            else (None, self.expr(v.name, describe(node)))
            for v in branch.output
        ]
        self.known, self.exprs, self.initializers = outer
        for name, (array, expr) in zip(node.output, results, strict=True):
            if array is not None:
                self.known[name] = array
            else:
                self.exprs[name] = expr

    def _convert(self, node: onnx.NodeProto) -> None:
        inputs = [self.expr(name, describe(node)) if name else None for name in node.input]
        try:
            self._bind(node, convert_node(self.bb, node, inputs, self.opsets))
        except ModelError as err:
            raise ModelError(f"{describe(node)}: {err}") from err
        # Converters are other people's code (TVM's, users'): whatever they raise, the user should
        # learn at which node of the model.
        except Exception as err:
            shown = [_show(expr) for expr in inputs]
            raise ModelError(
                f"{describe(node)} can't be converted: {err} (inputs: {', '.join(shown)})"
            ) from err

    def _bind(self, node: onnx.NodeProto, result: relax.Expr | Sequence[relax.Expr]) -> None:
        """Emit a converter's results and give them the names of the node's outputs."""
        if node.op_type in _SEQUENCE_OPS:
            self.exprs[node.output[0]] = self.bb.normalize(result)
            return
        tensors = tensors_of(self.bb, result)
        if len(tensors) < len([name for name in node.output if name]):
            raise ModelError(f"the converter returned {len(tensors)} of {len(node.output)} outputs")
        for name, expr in zip(node.output, tensors, strict=False):
            if not name:
                continue
            if not isinstance(expr, relax.Var | tvm.ir.GenericConst):
                expr = self.bb.emit(expr, name_hint=re.sub(r"\W", "_", name))
            _check_static(expr)
            self.exprs[name] = expr


def _check_static(expr: relax.Expr) -> None:
    ty = expr.ty
    if not isinstance(ty, relax.TensorType) or ty.shape is None:
        raise ModelError(f"the result's shape isn't known at import: {ty}")
    if not all(isinstance(d, tvm.tirx.IntImm) for d in ty.shape):
        raise ModelError(f"the result's shape isn't static: {ty}")


def _show(expr: relax.Expr | None) -> str:
    return "none" if expr is None else str(expr.ty)
