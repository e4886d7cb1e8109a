"""Rewrite rules: the base class, and the register that `RewriteGraph` takes them from."""

from __future__ import annotations

import importlib
import pkgutil
from abc import ABC, abstractmethod
from typing import Any, ClassVar, TypeVar

from tvm import relax

from tvm_ext.passes.rewriting.pattern import Either, Match, Op


class Rule(ABC):
    """One rewriting, in a file of its own in `rules/`.

    Attributes
    ----------
    name : str
        By which people switch it off.
    formula : str
        What it does, in a line.
    tolerance : float
        Largest relative change of results; 0 where they are the same bit for bit.
    fast_math : bool
        Whether it can change more than that somewhere (overflow, NaN, signs of zero), so that
        people have to ask for it.
    pattern : Op or Either
    """

    name: ClassVar[str]
    formula: ClassVar[str]
    tolerance: ClassVar[float] = 0.0
    fast_math: ClassVar[bool] = False
    pattern: ClassVar[Op | Either]

    def refuses(self, match: Match) -> str:
        """Why the rule doesn't apply to a match; an empty string if it does."""
        return ""

    @abstractmethod
    def replace(self, match: Match, root: relax.Call, builder: relax.BlockBuilder) -> Any:
        """The expression in place of `root`; earlier ones are emitted through the builder."""


_RULES: dict[str, Rule] = {}
_RuleType = TypeVar("_RuleType", bound=type[Rule])


def register_rule(cls: _RuleType) -> _RuleType:
    """Class decorator: put a rule into the register."""
    if cls.name in _RULES:
        raise ValueError(f"rule {cls.name!r} is registered twice")
    _RULES[cls.name] = cls()
    return cls


def rules() -> dict[str, Rule]:
    """Every rule by its name."""
    from tvm_ext.passes.rewriting import rules as package

    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return dict(_RULES)
