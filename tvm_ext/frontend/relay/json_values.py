"""Plain data and types in a JSON graph: numbers, strings, lists, shapes, attribute records."""

from __future__ import annotations

from typing import Any

from tvm_ext.frontend.relay.ast import Dim, TensorType, TupleType, Type
from tvm_ext.frontend.relay.attribute_defaults import record_schema
from tvm_ext.frontend.relay.dtypes import check_dtype
from tvm_ext.frontend.relay.json_nodes import STRINGS, Graph, Node

# Attributes nest two or three deep; a file that goes on is broken.
_MAX_DEPTH = 64

_OPEN = ("tir.Any", "Any")
_SYMBOLS = ("tir.Var", "tir.SizeVar", "Variable", "Var", "SizeVar")


def plain_value(graph: Graph, node: Node, depth: int = 0) -> Any:
    """A node as plain data.

    Returns
    -------
    int, float, bool, str, None, list or dict
        ``"?"`` for a dimension that is open, its name for a symbolic one; an object that isn't
        data, such as a target, is its type in angle brackets: ``"<Target>"``.
    """
    key = node.type_key
    if depth > _MAX_DEPTH:
        raise graph.error(node, f"values nest deeper than {_MAX_DEPTH}")
    if key == "":
        return None
    if key in STRINGS:
        return graph.text(node)
    if key == "IntImm":
        value = graph.number(node, "value")
        return bool(value) if node.attrs.get("dtype") in ("bool", "uint1") else value
    if key == "FloatImm":
        return _float(graph, node, node.attrs.get("value", ""))
    # Since 0.18 numbers stand in boxes as well.
    if key == "runtime.BoxInt":
        return graph.whole(node, "value", node.text)
    if key == "runtime.BoxFloat":
        return _float(graph, node, node.text)
    if key == "runtime.BoxBool":
        return node.text == "true"
    if key == "Array":
        return [plain_value(graph, item, depth + 1) for item in graph.items(node)]
    if key in ("Map", "StrMap"):
        return {
            k if isinstance(k, str) else str(plain_value(graph, k, depth + 1)): plain_value(
                graph, v, depth + 1
            )
            for k, v in graph.entries(node)
        }
    if key in _OPEN:
        return "?"
    if key in _SYMBOLS:
        return graph.string(node, "name")
    if key == "GlobalVar":
        return graph.string(node, "name_hint")
    if key == "DictAttrs":
        return plain_value(graph, graph.child(node, "__dict__"), depth + 1)
    if key.startswith("relay.attrs."):
        return record_values(graph, node, depth + 1)
    return f"<{key}>"


def record_values(graph: Graph, node: Node, depth: int = 0) -> dict[str, Any]:
    """The attributes of a call as plain data, without defaults.

    A record that `attribute_defaults` doesn't know keeps the strings of the file.
    """
    schema = record_schema(node.type_key)
    if schema is None:
        return dict(node.attrs)
    values: dict[str, Any] = {}
    for name, text in node.attrs.items():
        kind = schema.kinds.get(name)
        if kind == "node":
            values[name] = plain_value(graph, graph.child(node, name), depth + 1)
        elif kind == "int":
            values[name] = graph.number(node, name)
        elif kind == "float":
            values[name] = _float(graph, node, text)
        elif kind == "bool":
            values[name] = bool(graph.number(node, name))
        elif kind == "dtype":
            values[name] = _dtype(graph, node, text) if text not in ("", "void") else ""
        elif kind == "str":
            values[name] = graph.string(node, name)
        else:
            values[name] = text
    return values


def type_of(graph: Graph, node: Node, inferred: bool, depth: int = 0) -> Type | None:
    """A type; None where the file has none, or that of a function.

    Parameters
    ----------
    graph, node
    inferred : bool
        Relay found the type itself: an algebraic type or a reference is None, where one that the
        program states is an error.
    """
    key = node.type_key.removeprefix("relay.")
    if depth > _MAX_DEPTH:
        raise graph.error(node, f"types nest deeper than {_MAX_DEPTH}")
    if key == "TensorType":
        return TensorType(
            tuple(_dim(graph, dim) for dim in graph.items(graph.child(node, "shape"))),
            _dtype(graph, node, graph.attr(node, "dtype")),
        )
    if key == "TupleType":
        members = graph.items(graph.child(node, "fields"))
        fields = [type_of(graph, f, inferred, depth + 1) for f in members]
        known = tuple(f for f in fields if f is not None)
        return TupleType(known) if len(known) == len(fields) else None
    if inferred or key in ("", "FuncType", "IncompleteType"):
        return None
    raise graph.error(
        node, "this type isn't read: allowed are tensors, tuples of them and functions"
    )


def _dim(graph: Graph, node: Node) -> Dim:
    value = plain_value(graph, node)
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise graph.error(node, "stands where a dimension must be")
    # An expression of other dimensions, in a type that Relay inferred, is as open as they are.
    return "?" if isinstance(value, str) and value.startswith("<") else value


def _float(graph: Graph, node: Node, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise graph.error(node, f"{text!r} stands where a number must be") from None


def _dtype(graph: Graph, node: Node, text: str) -> str:
    try:
        return check_dtype(text)
    except ValueError as error:
        raise graph.error(node, str(error)) from None
