"""The check, before any conversion, that every operator of a program has a converter."""

from __future__ import annotations

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from tvm_ext.errors import UnsupportedOperatorsError
from tvm_ext.frontend.torch_inputs import NUMBERS, BoundInputs
from tvm_ext.frontend.torch_registry import IGNORED, is_supported, operator_name

_REMEDY = "take them apart first, with ExportedProgram.run_decompositions({operator: function})"


def check_operators(program: ExportedProgram, inputs: BoundInputs) -> None:
    """Raise UnsupportedOperatorsError naming all nodes of all operators without a converter."""
    placeholders = program.graph.find_nodes(op="placeholder")
    running = {node for node in placeholders if node.name in inputs.shapes}
    missing: dict[str, list[str]] = {}
    for node in program.graph.nodes:
        if node.op != "call_function" or node.target in IGNORED or can_evaluate(node, running):
            continue
        running.add(node)
        if not is_supported(node.target):
            missing.setdefault(operator_name(node.target), []).append(node_label(node))
    if missing:
        raise UnsupportedOperatorsError(missing, _REMEDY)


def can_evaluate(node: Node, running: set[Node]) -> bool:
    """Tell whether a node's value follows from what is known before the program runs.

    Parameters
    ----------
    node : Node
        A node of the kind ``call_function``.
    running : set of Node
        The nodes whose values are only known when the program runs.
    """
    if isinstance(node.meta.get("val"), NUMBERS):
        return True
    tags = getattr(node.target, "tags", ())
    # A new value at every run: the import must not freeze one.
    random = torch.Tag.nondeterministic_seeded in tags
    return not random and not any(source in running for source in node.all_input_nodes)


def node_label(node: Node) -> str:
    """A node's name, and the module of the model that it comes from where torch knows it."""
    stack = node.meta.get("nn_module_stack") or {}
    paths = [path for path, _ in stack.values()]
    return f"{node.name} (in {paths[-1]})" if paths and paths[-1] else node.name
