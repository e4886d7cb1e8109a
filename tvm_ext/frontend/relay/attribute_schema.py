"""What an attribute record of Relay's holds: names, kinds and defaults, from a compact table.

A table has one block a record::

    Conv2DAttrs: nn.conv2d qnn.conv2d
        node strides=[1, 1], channels=None
        int groups=1
        dtype out_dtype=""

The first line names the record and the operators that take it. Below it, each line has one kind and
the attributes of that kind; one without a default is always in a file.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

# How a JSON graph writes a value: `node` as the number of a node, `str` as itself or (since 0.9) as
# the number of a string's node, the others as themselves.
KINDS = ("node", "int", "float", "bool", "str", "dtype")


@dataclass(frozen=True)
class Schema:
    """One attribute record.

    Attributes
    ----------
    name : str
        As in ``relay.attrs.Conv2DAttrs``, without the prefix.
    operators : tuple of str
        The operators that take it.
    kinds : dict of str to str
        Attribute name -> one of `KINDS`.
    defaults : dict of str to plain data
        Of the attributes that have one.
    """

    name: str
    operators: tuple[str, ...]
    kinds: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)


def parse_schemas(table: str) -> Iterator[Schema]:
    """The records of a table in the form above."""
    blocks: list[list[str]] = []
    for line in filter(str.strip, table.splitlines()):
        if line.startswith(" "):
            blocks[-1].append(line.strip())
        else:
            blocks.append([line])
    for head, *lines in blocks:
        name, _, operators = head.partition(":")
        kinds: dict[str, str] = {}
        defaults: dict[str, Any] = {}
        for line in lines:
            kind, _, rest = line.partition(" ")
            if kind not in KINDS:
                raise ValueError(f"{name}: the kind {kind!r} isn't one of {KINDS}")
            call = ast.parse(f"f({rest})", mode="eval").body
            assert isinstance(call, ast.Call)
            kinds.update((arg.id, kind) for arg in call.args if isinstance(arg, ast.Name))
            for keyword in call.keywords:
                assert keyword.arg is not None
                kinds[keyword.arg] = kind
                defaults[keyword.arg] = ast.literal_eval(keyword.value)
        yield Schema(name, tuple(operators.split()), kinds, defaults)
