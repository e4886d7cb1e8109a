"""Relay's attributes made complete: what a file leaves out has Relay's default.

A text leaves out every attribute that has its default; a JSON graph leaves out those that its
version of TVM didn't have yet. Completed, both forms and all versions agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm_ext.frontend.relay.attribute_records_image import IMAGE_RECORDS
from tvm_ext.frontend.relay.attribute_records_nn import NN_RECORDS
from tvm_ext.frontend.relay.attribute_records_tensor import TENSOR_RECORDS
from tvm_ext.frontend.relay.attribute_schema import Schema, parse_schemas

_RECORDS: dict[str, Schema] = {
    schema.name: schema
    for table in (NN_RECORDS, TENSOR_RECORDS, IMAGE_RECORDS)
    for schema in parse_schemas(table)
}
_OPERATORS: dict[str, Schema] = {
    operator: schema for schema in _RECORDS.values() for operator in schema.operators
}


def record_schema(type_key: str) -> Schema | None:
    """The record of a JSON node's type, such as ``relay.attrs.Conv2DAttrs``; None if unknown."""
    return _RECORDS.get(type_key.removeprefix("relay.attrs."))


def operator_schema(operator: str) -> Schema | None:
    """The record that an operator takes; None for one without attributes or unknown."""
    return _OPERATORS.get(operator)


def complete_attributes(
    schema: Schema, attributes: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Add defaults, and make versions agree.

    Parameters
    ----------
    schema : Schema
    attributes : mapping of str to plain data
        What the file has.

    Returns
    -------
    attributes : dict of str to plain data
        The record's attributes in its order, then others that the file has.
    missing : list of str
        Attributes without a default that the file doesn't have.
    """
    complete: dict[str, Any] = {}
    missing = []
    for name, kind in schema.kinds.items():
        if name in attributes:
            complete[name] = _as_kind(attributes[name], kind)
        elif name in schema.defaults:
            complete[name] = copy_plain(schema.defaults[name])
        else:
            missing.append(name)
    complete.update((k, copy_plain(v)) for k, v in attributes.items() if k not in complete)
    # "None" is Relay's configuration, which rounds upward unless a program changes it. Before 0.9
    # the default was spelled out.
    if schema.name == "RequantizeAttrs" and complete.get("rounding") == "None":
        complete["rounding"] = "UPWARD"
    return complete, missing


def _as_kind(value: Any, kind: str) -> Any:
    """The value as the record's kind has it: a text can write 1 for True, or 2 for 2.0."""
    if kind == "float" and isinstance(value, int):
        return float(value)
    if kind == "bool" and isinstance(value, int):
        return bool(value)
    return copy_plain(value)


def copy_plain(value: Any) -> Any:
    """A copy of plain data, so that no two calls share a list."""
    if isinstance(value, list):
        return [copy_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: copy_plain(item) for key, item in value.items()}
    return value
