"""Names of dtypes in Relay's files."""

from __future__ import annotations

import re

_NAME = re.compile(
    r"(?:int|uint|float)|(?:int|uint|float|bfloat)\d+(?:x\d+)?|bool(?:x\d+)?|handle|void"
    r"|e[45]m[23]_float8|custom\[\w+\]\d+(?:x\d+)?"
)
_MAX_BITS = 128
_SAME = {"uint1": "bool", "int": "int32", "uint": "uint32", "float": "float32"}


def check_dtype(name: str) -> str:
    """The dtype's name; where TVM has two of them, such as ``uint1`` and ``bool``, NumPy's.

    Raises
    ------
    ValueError
        It isn't a dtype of TVM's.
    """
    bits = re.match(r"(?:int|uint|float|bfloat)(\d+)", name)
    if not _NAME.fullmatch(name) or (bits and not 0 < int(bits.group(1)) <= _MAX_BITS):
        raise ValueError(f"{name!r} is no dtype; such are float32, int8, uint8, bool")
    return _SAME.get(name, name)
