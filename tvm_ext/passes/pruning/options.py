"""Checks of the options that schemes have."""

from __future__ import annotations

from collections.abc import Collection
from numbers import Real
from typing import Any

from tvm_ext.errors import OptionError


def check_density(option: str, value: Any) -> None:
    """Refuse what isn't a share of weights.

    Raises
    ------
    OptionError
        The value isn't a number in (0, 1].
    """
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not 0 < value <= 1:
        raise OptionError(f"{option}={value!r} has to be a number in (0, 1]")


def check_count(option: str, value: Any, most: int | None = None) -> None:
    """Refuse what isn't a whole number from 1 to `most`.

    Raises
    ------
    OptionError
    """
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or value < 1 or (most is not None and value > most):
        limit = "1 or more" if most is None else f"1 to {most}"
        raise OptionError(f"{option}={value!r} has to be a whole number, {limit}")


def check_choice(option: str, value: Any, choices: Collection[str]) -> None:
    """Refuse what isn't one of the choices.

    Raises
    ------
    OptionError
    """
    if value not in choices:
        raise OptionError(f"{option}={value!r} is not one of {', '.join(choices)}")
