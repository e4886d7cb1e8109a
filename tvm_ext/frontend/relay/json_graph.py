"""Modules that TVM 0.8 to 0.19 saved with ``tvm.ir.save_json``."""

from __future__ import annotations

from tvm_ext.frontend.relay.ast import Function, RelayModule
from tvm_ext.frontend.relay.errors import RelayError
from tvm_ext.frontend.relay.json_expressions import ExpressionReader
from tvm_ext.frontend.relay.json_nodes import Graph, Node, parse_graph

_MODULES = ("IRModule", "relay.Module")
_FUNCTION = "relay.Function"


def read_json_module(text: str, source: str = "JSON") -> RelayModule:
    """Read a module, or a single function as the module's ``main``.

    Parameters
    ----------
    text : str
    source : str
        The file's name, for errors.

    Returns
    -------
    RelayModule
        ``main`` and the functions that it calls; others aren't read.

    Raises
    ------
    RelayError
        The text is truncated or no such graph, has no ``main``, or ``main`` needs what isn't read.
    """
    graph = parse_graph(text, source)
    root = graph.node(graph.root)
    nodes = _function_nodes(graph, root)
    if "main" not in nodes:
        raise RelayError(f"the module has no function main; it has {sorted(nodes)}", source)
    reader = ExpressionReader(graph)
    functions: dict[str, Function] = {}
    waiting = ["main"]
    while waiting:
        name = waiting.pop()
        if name in functions:
            continue
        node = nodes.get(name)
        if node is None:
            raise RelayError(
                f"the function {name!r} is called, and not there; there are {sorted(nodes)}", source
            )
        if node.type_key != _FUNCTION:
            raise graph.error(node, f"is the function {name!r}: allowed are {_FUNCTION} nodes")
        function = reader.read(node)
        assert isinstance(function, Function)
        functions[name] = function
        waiting += reader.global_names
        reader.global_names.clear()
    return RelayModule(functions, graph.version)


def _function_nodes(graph: Graph, root: Node) -> dict[str, Node]:
    if root.type_key == _FUNCTION:
        return {"main": root}
    if root.type_key not in _MODULES:
        raise graph.error(
            root, f"is the root: allowed are a module ({', '.join(_MODULES)}) and {_FUNCTION}"
        )
    nodes = {}
    for key, value in graph.entries(graph.child(root, "functions")):
        name = key if isinstance(key, str) else graph.string(key, "name_hint")
        nodes[name] = value
    return nodes
