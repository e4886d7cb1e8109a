"""Sizes of memories as people write them: 512KiB, 1MiB, 300000."""

from __future__ import annotations

import re

from tvm_ext.codegen.errors import AcceleratorError

UNITS = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "kB": 10**3, "MB": 10**6}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)")
_BY_LOWER_CASE = {unit.lower(): factor for unit, factor in UNITS.items()}


def parse_size(text: str | int) -> int:
    """Bytes of a size: ``"512KiB"``, ``"1.5 MiB"``, ``"300000"``; a number as it is.

    Raises
    ------
    AcceleratorError
        It isn't a number with a known unit, or no whole number of bytes.
    """
    if isinstance(text, int):
        return text
    found = _SIZE.fullmatch(text.strip())
    if found is None or found[2].lower() not in _BY_LOWER_CASE:
        raise AcceleratorError(
            f"the size {text!r} can't be read; allowed: a number and nothing or one of "
            f"{', '.join(unit for unit in UNITS if unit)}, such as 512KiB"
        )
    nbytes = float(found[1]) * _BY_LOWER_CASE[found[2].lower()]
    if not nbytes.is_integer():
        raise AcceleratorError(f"the size {text!r} is {nbytes} bytes; allowed: whole bytes")
    return int(nbytes)


def format_size(nbytes: int) -> str:
    """A size in the largest binary unit of which it is a whole number: ``512 KiB``, ``1 MiB``."""
    for unit in ("GiB", "MiB", "KiB"):
        if nbytes >= UNITS[unit] and nbytes % UNITS[unit] == 0:
            return f"{nbytes // UNITS[unit]} {unit}"
    return f"{nbytes} B"
