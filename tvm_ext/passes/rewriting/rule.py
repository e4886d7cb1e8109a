"""Rewrite rules: the base class, and the register that `RewriteGraph` takes them from."""

from __future__ import annotations

import importlib
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import Any, ClassVar, TypeVar

from tvm import relax

from tvm_ext.passes.rewriting.branch import Branch, Merger
from tvm_ext.passes.rewriting.pattern import Again, Either, Match, Op


class Described(ABC):
    """What every rule says of itself.

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
    optional : bool
        Whether people have to ask for it by its name: because it computes another function, up to
        `tolerance` from the given one in absolute terms, or because it has lost time somewhere.
    """

    name: ClassVar[str]
    formula: ClassVar[str]
    tolerance: ClassVar[float] = 0.0
    fast_math: ClassVar[bool] = False
    optional: ClassVar[bool] = False

    @property
    def on(self) -> str:
        """When it is used."""
        if self.optional:
            return "by name"
        return "fast_math" if self.fast_math else "always"


class Rule(Described):
    """One rewriting of an operator and of those that it reads, in a file of its own in `rules/`.

    Attributes
    ----------
    pattern : Op, Either or Again
    """

    pattern: ClassVar[Op | Either | Again]

    def refuses(self, match: Match) -> str:
        """Why the rule doesn't apply to a match; an empty string if it does."""
        return ""

    @abstractmethod
    def replace(self, match: Match, root: relax.Call, builder: relax.BlockBuilder) -> Any:
        """The expression in place of `root`; earlier ones are emitted through the builder."""


class MergeRule(Described):
    """One rewriting of operators that read the same value, with what follows them.

    Attributes
    ----------
    operator : str
        Without ``relax.``.
    least : int
        Of how many branches at least.
    """

    operator: ClassVar[str]
    least: ClassVar[int] = 2

    @abstractmethod
    def key(self, branch: Branch) -> Hashable:
        """Equal for branches that may become one; None for one that can't."""

    @abstractmethod
    def merge(self, branches: Sequence[Branch]) -> Merger | str:
        """How to merge branches with the same key, or why not to."""


_RULES: dict[str, Described] = {}
_RuleType = TypeVar("_RuleType", bound=type[Described])


def register_rule(cls: _RuleType) -> _RuleType:
    """Class decorator: put a rule into the register."""
    if cls.name in _RULES:
        raise ValueError(f"rule {cls.name!r} is registered twice")
    _RULES[cls.name] = cls()
    return cls


def rules() -> dict[str, Described]:
    """Every rule by its name."""
    from tvm_ext.passes.rewriting import rules as package

    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return dict(_RULES)
