"""The points of a sweep: every combination of the options' values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from itertools import product
from typing import Any

from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.lowering import MAPPINGS
from tvm_ext.codegen.sizes import parse_size
from tvm_ext.errors import OptionError

_OPTIONS = tuple(field.name for field in fields(Accelerator) if field.name != "name")


def grid(
    base: Accelerator, options: Mapping[str, Any], mapping: Any
) -> list[tuple[Accelerator, str]]:
    """All combinations, the last option changing fastest; the same one twice is one.

    Parameters
    ----------
    base : Accelerator
        Values of the options that aren't given.
    options : Mapping
        Option of `Accelerator` -> a value or several; sizes may be texts such as ``"512KiB"``.
    mapping : str or iterable of str

    Raises
    ------
    OptionError
        An option or mapping is unknown, or has no values.
    AcceleratorError
        A combination isn't allowed.
    """
    if unknown := [name for name in options if name not in _OPTIONS]:
        raise OptionError(
            f"sweep option {unknown[0]!r}; allowed: pe, sram, {', '.join(_OPTIONS)}, mapping"
        )
    values = {name: _values(name, given) for name, given in options.items()}
    mappings = _values("mapping", mapping)
    if wrong := [name for name in mappings if name not in MAPPINGS]:
        raise OptionError(f"mapping={wrong[0]!r}; allowed: {', '.join(MAPPINGS)}")
    points = [
        (replace(base, **dict(zip(values, chosen, strict=True))), name)
        for *chosen, name in product(*values.values(), mappings)
    ]
    return list(dict.fromkeys(points))


def _values(name: str, given: Any) -> list[Any]:
    several = isinstance(given, Iterable) and not isinstance(given, str)
    values = list(given) if several else [given]
    if not values:
        raise OptionError(f"sweep option {name} has no values; allowed: one or more")
    return [parse_size(value) for value in values] if name == "sram_bytes" else values
