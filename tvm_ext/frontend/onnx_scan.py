"""The check, before any conversion, that every operator of a graph has a converter."""

from __future__ import annotations

from collections.abc import Iterable

import onnx

from tvm_ext.errors import UnsupportedOperatorsError
from tvm_ext.frontend.onnx_fold import can_fold, fold_inputs
from tvm_ext.frontend.onnx_graph import Graph, node_label, subgraphs
from tvm_ext.frontend.onnx_registry import DEFAULT_DOMAINS, is_supported

# The importer itself handles these.
_BUILT_IN = frozenset({"Constant", "Identity", "Shape", "Size"})


def check_operators(graph: Graph) -> None:
    """Raise UnsupportedOperatorsError naming all nodes of all operators without a converter."""
    check_nodes(graph.nodes, graph.initializers)


def check_nodes(nodes: Iterable[onnx.NodeProto], constants: Iterable[str]) -> None:
    """Check `nodes`, given the names whose values are known at import.

    A node whose inputs are all known is evaluated at import and needs no converter. That is also
    how ``If`` and ``Loop`` are taken: an ``If`` with a known condition is replaced by one branch
    (which is checked when it is chosen), any other use of control flow is unsupported.
    """
    known = set(constants)
    missing: dict[str, list[str]] = {}
    for node in nodes:
        if _is_known(node, known):
            known.update(node.output)
        elif not (
            node.op_type == "If" and node.domain in DEFAULT_DOMAINS and node.input[0] in known
        ):
            _collect(node, missing)
    if missing:
        raise UnsupportedOperatorsError(missing)


def _is_known(node: onnx.NodeProto, known: set[str]) -> bool:
    if node.domain in DEFAULT_DOMAINS and node.op_type in ("Shape", "Size"):
        return True
    return can_fold(node) and all(name in known for name in fold_inputs(node))


def _collect(node: onnx.NodeProto, missing: dict[str, list[str]]) -> None:
    default = node.domain in DEFAULT_DOMAINS
    if not (default and node.op_type in _BUILT_IN) and not is_supported(node.op_type, node.domain):
        operator = node.op_type if default else f"{node.domain}::{node.op_type}"
        missing.setdefault(operator, []).append(node_label(node))
    for graph in subgraphs(node):
        for inner in graph.node:
            _collect(inner, missing)
