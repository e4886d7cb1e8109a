"""The metadata section of a text: the objects that it refers to as ``meta[type][index]``."""

from __future__ import annotations

import re
from typing import Any

from tvm_ext.frontend.relay.ast import Expr
from tvm_ext.frontend.relay.json_expressions import ExpressionReader
from tvm_ext.frontend.relay.json_nodes import Graph, Node, parse_graph
from tvm_ext.frontend.relay.json_values import plain_value, record_values
from tvm_ext.frontend.relay.text_tokens import Cursor, Token

_REFERENCE = re.compile(r"meta\[([^\]]*)\]\[(\d+)\]")
_DATA = ("relay.attrs.", "DictAttrs", "Map", "Array", "IntImm", "FloatImm", "runtime.")
_SYMBOLS = ("tir.Var", "tir.SizeVar", "Variable", "SizeVar")


class MetaSection:
    """The section, or that there is none.

    Parameters
    ----------
    text : str
        JSON of ``tvm.ir.save_json``: a map from types to lists of objects; may be empty.
    source : str
    cursor : Cursor
        Of the text that refers to it, for errors.
    """

    def __init__(self, text: str, source: str, cursor: Cursor) -> None:
        self._cursor = cursor
        self._graph: Graph | None = None
        self._nodes: dict[str, list[Node]] = {}
        if text.strip():
            graph = parse_graph(text, f"{source} (metadata)")
            self._graph = graph
            self._reader = ExpressionReader(graph)
            for key, value in graph.entries(graph.node(graph.root)):
                name = key if isinstance(key, str) else graph.text(key)
                self._nodes[name] = graph.items(value)

    def expression(self, token: Token) -> Expr:
        """The expression that a reference stands for."""
        _, node = self._lookup(token)
        return self._reader.read(node)

    def value(self, token: Token) -> Any:
        """What a reference stands for as plain data.

        Without the section, a symbolic dimension has a name made of its type and number, and other
        objects are their type in angle brackets; data must be there.
        """
        match = _REFERENCE.fullmatch(token.text)
        assert match is not None
        key, index = match.groups()
        if self._graph is None:
            if key in _SYMBOLS:
                return f"{key}_{index}"
            if key in ("tir.Any", "Any"):
                return "?"
            if not key.startswith(_DATA):
                return f"<{key}>"
        graph, node = self._lookup(token)
        if node.type_key.startswith("relay.attrs."):
            return record_values(graph, node)
        return plain_value(graph, node)

    def _lookup(self, token: Token) -> tuple[Graph, Node]:
        match = _REFERENCE.fullmatch(token.text)
        assert match is not None
        key, index = match.group(1), int(match.group(2))
        if self._graph is None:
            raise self._cursor.error(
                f"{token.text} is in the metadata section, and the text has none: save the module "
                "with mod.astext(show_meta_data=True) or tvm.ir.save_json(mod)",
                token,
            )
        nodes = self._nodes.get(key, [])
        if index >= len(nodes):
            raise self._cursor.error(
                f"{token.text}: the metadata section has {len(nodes)} of {key!r}", token
            )
        return self._graph, nodes[index]
