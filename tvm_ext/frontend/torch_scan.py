"""Which nodes are left for run time, and the check that each of these has a converter."""

from __future__ import annotations

from collections.abc import Container, Iterable

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from tvm_ext.errors import UnsupportedOperatorsError
from tvm_ext.frontend.torch_inputs import NUMBERS, BoundInputs
from tvm_ext.frontend.torch_registry import IGNORED, is_supported, operator_name

_REMEDY = "take them apart first, with ExportedProgram.run_decompositions({operator: function})"


def running_nodes(program: ExportedProgram, inputs: BoundInputs) -> dict[Node, None]:
    """Return the nodes whose values are only known when the program runs.

    Parameters
    ----------
    program : ExportedProgram
        From `prepare_program`.
    inputs : BoundInputs
        Its inputs.

    Returns
    -------
    dict of Node to None
        Placeholders and operators, in the program's order.
    """
    running: dict[Node, None] = {}
    for node in program.graph.nodes:
        if node.op == "placeholder":
            runs = node.name in inputs.shapes
        else:
            operator = node.op == "call_function" and node.target not in IGNORED
            runs = operator and not _can_evaluate(node, running)
        if runs:
            running[node] = None
    return running


def check_operators(running: Iterable[Node]) -> None:
    """Raise UnsupportedOperatorsError naming all nodes of all operators without a converter."""
    missing: dict[str, list[str]] = {}
    for node in running:
        if node.op == "call_function" and not is_supported(node.target):
            missing.setdefault(operator_name(node.target), []).append(node_label(node))
    if missing:
        raise UnsupportedOperatorsError(missing, _REMEDY)


def _can_evaluate(node: Node, running: Container[Node]) -> bool:
    """Tell whether an operator's value follows from what is known before the program runs."""
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
