"""Which layers are pruned: named, excluded, and left out unless one asks for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TypeVar

from tvm_ext.errors import PruningError
from tvm_ext.passes.pruning.prunable import Prunable

Patterns = str | Iterable[str]
T = TypeVar("T")


def select(
    layers: Sequence[Prunable], include: Patterns = (), exclude: Patterns | None = None
) -> dict[str, str]:
    """Why each layer is left alone; an empty string for one that is pruned.

    Parameters
    ----------
    layers : sequence of Prunable
    include : str or iterable of str
        Names, or patterns as of a shell; all layers if there are none.
    exclude : str or iterable of str, optional
        The same. If it isn't given, the first convolution and the last dense layer are left out,
        unless `include` has their names themselves.

    Raises
    ------
    PruningError
        A pattern matches no layer: it names those that there are.
    """
    wanted, unwanted = as_patterns(include), as_patterns(exclude if exclude is not None else ())
    names = [layer.name for layer in layers]
    check_matches("include", wanted, names)
    check_matches("exclude", unwanted, names)
    default = _default(layers) if exclude is None else {}
    reasons = {}
    for name in names:
        reason = "" if name in wanted else default.get(name, "")
        if wanted and not _matches(name, wanted):
            reason = "not included"
        if found := _matches(name, unwanted):
            reason = f"excluded by {found!r}"
        reasons[name] = reason
    return reasons


def per_layer(option: str, given: Mapping[str, T], names: Sequence[str]) -> dict[str, T]:
    """The value for each layer that a pattern matches; the first pattern that does counts.

    Raises
    ------
    PruningError
        A pattern matches none of the layers `names`.
    """
    check_matches(option, tuple(given), names)
    found = {}
    for name in names:
        if pattern := _matches(name, tuple(given)):
            found[name] = given[pattern]
    return found


def as_patterns(patterns: Patterns) -> tuple[str, ...]:
    """One pattern, or several, as a tuple."""
    return (patterns,) if isinstance(patterns, str) else tuple(patterns)


def check_matches(option: str, patterns: Sequence[str], names: Sequence[str]) -> None:
    """Refuse a pattern that matches none of the layers.

    Raises
    ------
    PruningError
    """
    for pattern in patterns:
        if not any(_matches(name, (pattern,)) for name in names):
            there = ", ".join(names) or "none"
            raise PruningError(f"{option}={pattern!r} matches no layer that can be pruned: {there}")


def _matches(name: str, patterns: Sequence[str]) -> str:
    """The first pattern that is the name or matches it, or an empty string."""
    return next((p for p in patterns if p == name or fnmatchcase(name, p)), "")


def _default(layers: Sequence[Prunable]) -> dict[str, str]:
    """The layers that are left out by default, which cost much accuracy and little time."""
    reasons = {}
    if first := next((x for x in layers if x.kind == "conv"), None):
        reasons[first.name] = "the first convolution"
    # A classifier stands at the end; the gates of a recurrent layer are used step by step.
    if layers and layers[-1].kind == "matmul" and len(layers[-1].uses) == 1:
        reasons[layers[-1].name] = "the last dense layer"
    return reasons
