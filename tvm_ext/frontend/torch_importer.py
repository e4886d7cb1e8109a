"""The walk over an exported program that emits one Relax function.

Every value is either known at import (torch computes it, with its own operators) or a Relax
expression. So masks, position tables, transposed weights and shape arithmetic never reach Relax.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import torch
import tvm
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.fx import Node
from tvm import relax
from tvm.relax.frontend.torch.exported_program_translator import ExportedProgramImporter

import tvm_ext.frontend.torch_converters  # noqa: F401  (registers our converters)
from tvm_ext.errors import ModelError
from tvm_ext.frontend.emit import emit_main, tensors_of
from tvm_ext.frontend.onnx_converters.values import const, dtype_of, shape_of
from tvm_ext.frontend.torch_inputs import NUMBERS, BoundInputs
from tvm_ext.frontend.torch_program import output_names
from tvm_ext.frontend.torch_registry import (
    IGNORED,
    Call,
    dtype_name,
    find_converter,
    operator_name,
)
from tvm_ext.frontend.torch_scan import node_label


def import_program(
    program: ExportedProgram, inputs: BoundInputs, running: Container[Node]
) -> tvm.IRModule:
    """Convert a prepared program.

    Parameters
    ----------
    program : ExportedProgram
        From `prepare_program`.
    inputs : BoundInputs
        Its inputs.
    running : container of Node
        From `running_nodes`, and passed by `check_operators`. All other nodes are evaluated.

    Returns
    -------
    tvm.IRModule
        One Relax function, ``main``.

    Raises
    ------
    ModelError
        A node can't be converted.
    """
    importer = _Importer(inputs, running)
    names = output_names(program)
    for node in program.graph.find_nodes(op="placeholder"):
        importer.bind(node)

    def convert() -> list[tuple[str, relax.Expr]]:
        for node in program.graph.nodes:
            importer.visit(node)
        (results,) = program.graph.output_node().args
        return importer.outputs(dict(zip(names, results, strict=True)))

    return emit_main(importer.bb, list(importer.params.values()), convert)


class _Importer:
    def __init__(self, inputs: BoundInputs, running: Container[Node]) -> None:
        self.bb = relax.BlockBuilder()
        self.inputs, self.running = inputs, running
        self.known: dict[Node, Any] = {}
        self.exprs: dict[Node, Any] = {}
        self.params: dict[str, relax.Var] = {}
        # Only its converters are used: they read their arguments in `env`, and emit into our block.
        self.tvm = ExportedProgramImporter()
        self.tvm.block_builder = self.bb
        self.tvm.env = self.exprs

    def bind(self, node: Node) -> None:
        """Give a placeholder its value, or make it a parameter."""
        if node in self.running:
            shape, dtype = self.inputs.shapes[node.name], node.meta["val"].dtype
            param = relax.Var(node.name, relax.TensorType(shape, dtype_name(dtype)))
            self.exprs[node] = self.params[node.name] = param
        else:
            self.known[node] = self.inputs.known[node.name]

    def visit(self, node: Node) -> None:
        """Find the value of an operator's node, in `known` or in `exprs`."""
        if node.op == "call_function" and node.target not in IGNORED:
            try:
                if node in self.running:
                    self.exprs[node] = self.convert(node)
                else:
                    self.known[node] = self.evaluate(node)
            # Converters are other people's code (TVM's, torch's): whatever they raise, the user
            # should learn at which node of the model.
            except Exception as err:
                raise ModelError(
                    f"node {node_label(node)!r} ({operator_name(node.target)}) can't be "
                    f"converted: {err}"
                ) from err

    def outputs(self, results: dict[str, Any]) -> list[tuple[str, relax.Expr]]:
        """The expressions that the program returns, with their names; None isn't one of them."""
        values = {
            name: self.expr(result) if isinstance(result, Node) else result
            for name, result in results.items()
        }
        for name, value in values.items():
            if value is not None and not isinstance(value, relax.Expr):
                raise ModelError(f"the output {name!r} is {value!r}; only tensors can be outputs")
        found = [(name, value) for name, value in values.items() if value is not None]
        if not found:
            raise ModelError("the program returns no tensor")
        return found

    def evaluate(self, node: Node) -> Any:
        """Compute a node's value with torch."""
        value = node.meta.get("val")
        if isinstance(value, NUMBERS):
            return self.inputs.number(value)
        args, kwargs = torch.fx.map_arg((node.args, node.kwargs), self.known.__getitem__)
        with torch.no_grad():
            return node.target(*args, **kwargs)

    def expr(self, node: Node) -> Any:
        """A node's value for a converter: tensors as expressions, others as they are."""
        if node not in self.exprs:
            value = self.known[node]
            if not isinstance(value, torch.Tensor):
                return value
            self.exprs[node] = _constant(value)
        return self.exprs[node]

    def convert(self, node: Node) -> Any:
        """Emit a node; several results are a list."""
        if not isinstance(node.target, OpOverload):
            source, index = node.args
            return self.element(self.exprs[source], index)
        converter = find_converter(node.target)
        if converter is not None:
            result = converter(self.call(node))
        else:
            for source in node.all_input_nodes:
                self.exprs[source] = self.expr(source)
            result = self.tvm.convert_map[node.target.__name__](node)
        return self.bound(node, result)

    def element(self, values: Any, index: int) -> Any:
        """One of a node's several results."""
        if values[index] is None:
            raise ModelError(f"its result {index} isn't supported")
        return values[index]

    def call(self, node: Node) -> Call:
        """The node with its arguments by name."""
        args, like = {}, {}
        for i, argument in enumerate(node.target._schema.arguments):
            if i < len(node.args):
                value = node.args[i]
            else:
                value = node.kwargs.get(argument.name, argument.default_value)
            args[argument.name] = torch.fx.map_arg(value, self.expr)
            like[argument.name] = value.meta["val"] if isinstance(value, Node) else value
        first = _first(node.meta["val"])
        shape, name = self.inputs.shape(first), operator_name(node.target)
        return Call(self.bb, name, args, like, shape, dtype_name(first.dtype))

    def bound(self, node: Node, result: Any) -> Any:
        """A converter's results, emitted, and checked against what torch says they are."""
        wanted = node.meta["val"]
        if isinstance(wanted, torch.Tensor):
            return self.checked(node, result, wanted)
        found = tensors_of(self.bb, result)
        # TVM leaves out what isn't used at inference, such as a batch norm's statistics.
        found += [None] * (len(wanted) - len(found))
        return [
            None if x is None else self.checked(node, x, w)
            for x, w in zip(found, wanted, strict=True)
        ]

    def checked(self, node: Node, expr: relax.Expr, wanted: torch.Tensor) -> relax.Expr:
        if not isinstance(expr, relax.Var | tvm.ir.GenericConst):
            expr = self.bb.emit(expr, name_hint=node.name)
        if expr.ty.shape is None or not all(isinstance(d, tvm.tirx.IntImm) for d in expr.ty.shape):
            raise ModelError(f"the result's shape isn't static: {expr.ty}")
        shape, dtype = self.inputs.shape(wanted), dtype_name(wanted.dtype)
        if (shape_of(expr), dtype_of(expr)) != (shape, dtype):
            raise ModelError(f"got {dtype_of(expr)} {shape_of(expr)}, torch has {dtype} {shape}")
        return expr


def _first(value: Any) -> torch.Tensor:
    return value if isinstance(value, torch.Tensor) else value[0]


def _constant(tensor: torch.Tensor) -> relax.Expr:
    tensor = tensor.resolve_neg()
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    if tensor.dtype is torch.bfloat16:
        # numpy has no such dtype; the copy is the constant's own.
        return relax.const(tvm.runtime.from_dlpack(tensor.clone().contiguous()))
    return const(tensor.numpy())
