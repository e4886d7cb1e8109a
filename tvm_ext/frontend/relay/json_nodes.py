"""The graph that ``tvm.ir.save_json`` writes, before it means anything: numbered nodes of strings.

``{"root": 1, "nodes": [{"type_key": "relay.Call", "attrs": {"op": "59", ...}}, ...],
"b64ndarrays": [...], "attrs": {"tvm_version": "0.16.0"}}``. A node's attributes are strings; which
of them are numbers of other nodes depends on its type. Containers have `data` (numbers of nodes)
and, with strings as keys, `keys`. Node 0 is null.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tvm_ext.frontend.relay.errors import RelayError
from tvm_ext.frontend.relay.ndarray import read_ndarray

STRINGS = ("runtime.String", "tir.StringImm", "StringImm")


@dataclass(frozen=True)
class Node:
    """One node as it stands in the file."""

    index: int
    type_key: str
    attrs: dict[str, str] = field(default_factory=dict)
    keys: tuple[str, ...] = ()
    data: tuple[int, ...] = ()
    text: str = ""


class Graph:
    """The nodes and arrays of one file.

    Attributes
    ----------
    source : str
        The file's name, for errors.
    root : int
    version : str
        TVM's version that wrote the file, such as "0.16.0"; empty where it isn't said.
    """

    def __init__(self, source: str, document: dict[str, Any]) -> None:
        self.source = source
        nodes = document.get("nodes")
        if not isinstance(nodes, list):
            raise RelayError("the list of nodes is missing", source)
        self._nodes = [self._node(index, entry) for index, entry in enumerate(nodes)]
        self._arrays = document.get("b64ndarrays", [])
        if not isinstance(self._arrays, list):
            raise RelayError("b64ndarrays isn't a list", source)
        attrs = document.get("attrs", {})
        self.version = str(attrs.get("tvm_version", "")) if isinstance(attrs, dict) else ""
        root = document.get("root")
        if not isinstance(root, int) or not 0 <= root < len(nodes):
            raise RelayError(f"root is {root!r}: allowed are 0 to {len(nodes) - 1}", source)
        self.root = root

    def _node(self, index: int, entry: Any) -> Node:
        def field_of(name: str, kind: type, item: type | None = None) -> Any:
            value = entry.get(name, kind())
            items = value.values() if isinstance(value, dict) else value
            if not isinstance(value, kind) or (item and any(type(i) is not item for i in items)):
                raise RelayError(f"{name} isn't as save_json writes it", self.source, where)
            return value

        where = f"node {index}"
        if not isinstance(entry, dict):
            raise RelayError("isn't an object", self.source, where)
        # TVM 0.6 names an operator by "global_key".
        text = field_of("repr_str", str) or field_of("global_key", str)
        if encoded := field_of("repr_b64", str):
            text = self._encoded_text(encoded, where)
        return Node(
            index,
            field_of("type_key", str),
            field_of("attrs", dict, str),
            tuple(field_of("keys", list, str)),
            tuple(field_of("data", list, int)),
            text,
        )

    def _encoded_text(self, encoded: str, where: str) -> str:
        """A string with characters that aren't printable: its length (uint64), then its bytes."""
        try:
            data = base64.b64decode(encoded, validate=True)
        except binascii.Error as error:
            raise RelayError(f"repr_b64 isn't base64: {error}", self.source, where) from error
        length = int.from_bytes(data[:8], "little")
        if len(data) - 8 != length:
            raise RelayError(
                f"repr_b64 is no string: it has {len(data) - 8} bytes behind its length {length}",
                self.source,
                where,
            )
        return data[8:].decode(errors="backslashreplace")

    def error(self, node: Node, message: str) -> RelayError:
        """An error that names the node."""
        return RelayError(message, self.source, f"node {node.index} ({node.type_key or 'null'})")

    def node(self, index: int, user: Node | None = None) -> Node:
        """The node of a number; `user` is the node that refers to it."""
        if 0 <= index < len(self._nodes):
            return self._nodes[index]
        message = f"refers to node {index}: allowed are 0 to {len(self._nodes) - 1}"
        raise self.error(user, message) if user else RelayError(message, self.source)

    def attr(self, node: Node, name: str) -> str:
        """An attribute that must be there."""
        try:
            return node.attrs[name]
        except KeyError:
            raise self.error(
                node, f"the attribute {name!r} is missing; there are {sorted(node.attrs)}"
            ) from None

    def number(self, node: Node, name: str) -> int:
        """An attribute that is a whole number: a value, or a node's number."""
        return self.whole(node, name, self.attr(node, name))

    def whole(self, node: Node, name: str, text: str) -> int:
        """The whole number in a text of a node's."""
        try:
            return int(text)
        except ValueError:
            raise self.error(node, f"{name} is {text!r}: allowed are whole numbers") from None

    def child(self, node: Node, name: str) -> Node:
        """The node that an attribute refers to."""
        return self.node(self.number(node, name), node)

    def items(self, node: Node) -> list[Node]:
        """The nodes of an array; a null is an empty one."""
        if node.type_key not in ("Array", ""):
            raise self.error(node, "stands where an Array must be")
        return [self.node(index, node) for index in node.data]

    def entries(self, node: Node) -> list[tuple[Node | str, Node]]:
        """Keys (strings, or nodes) and values of a map; a null is an empty one."""
        if node.type_key not in ("Map", "StrMap", ""):
            raise self.error(node, "stands where a Map must be")
        values = [self.node(index, node) for index in node.data]
        if node.keys:
            if len(node.keys) != len(values):
                raise self.error(node, f"has {len(node.keys)} keys and {len(values)} values")
            return list(zip(node.keys, values, strict=True))
        if len(values) % 2:
            raise self.error(node, f"{len(values)} nodes are no pairs of key and value")
        return list(zip(values[::2], values[1::2], strict=True))

    def string_node(self, node: Node, name: str) -> Node | None:
        """The string's node that an attribute refers to; None if the attribute is the string.

        Which it is changed with TVM's versions: a number that leads to a string's node is taken as
        a reference, all else as the string itself.
        """
        text = self.attr(node, name)
        if not (text.isascii() and text.isdigit() and len(text) < 12):
            return None
        if int(text) >= len(self._nodes):
            return None
        target = self._nodes[int(text)]
        return target if target.type_key in (*STRINGS, "") else None

    def string(self, node: Node, name: str) -> str:
        """An attribute that is a string, in the node or in one of its own; "" for a null."""
        target = self.string_node(node, name)
        return self.attr(node, name) if target is None else self.text(target)

    def text(self, node: Node) -> str:
        """The value of a string's node; "" for a null."""
        if node.type_key in ("runtime.String", ""):
            return node.text
        if node.type_key in STRINGS:
            return self.string(node, "value") if "value" in node.attrs else node.text
        raise self.error(node, f"stands where a string must be: {', '.join(STRINGS)}")

    def array(self, node: Node, name: str) -> np.ndarray:
        """The array that an attribute refers to."""
        index = self.number(node, name)
        if not 0 <= index < len(self._arrays) or not isinstance(self._arrays[index], str):
            raise self.error(
                node, f"refers to array {index}: the file has {len(self._arrays)} of them"
            )
        try:
            data = base64.b64decode(self._arrays[index], validate=True)
        except (binascii.Error, ValueError) as error:
            raise self.error(node, f"array {index} isn't base64: {error}") from error
        array, end = read_ndarray(memoryview(data), 0, f"{self.source}: array {index}")
        if end != len(data):
            raise self.error(node, f"array {index} has {len(data) - end} bytes too many")
        return array


def parse_graph(text: str, source: str) -> Graph:
    """Read the JSON text of a graph.

    Raises
    ------
    RelayError
        The text is truncated, isn't JSON, or no such graph.
    """
    try:
        # Strings may hold raw control characters: TVM's writer escapes only some of them.
        document = json.loads(text, strict=False)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise RelayError(f"isn't whole JSON: {error.msg}", source, where) from error
    except (RecursionError, ValueError) as error:
        raise RelayError(f"isn't JSON of save_json: {error}", source) from error
    if not isinstance(document, dict) or "nodes" not in document or "root" not in document:
        raise RelayError(
            'is JSON, but no graph of tvm.ir.save_json: that has the keys "root" and "nodes"',
            source,
        )
    return Graph(source, document)
