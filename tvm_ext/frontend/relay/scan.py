"""The check, before any conversion, that every operator of a module has a converter."""

from __future__ import annotations

from collections import Counter

import tvm_ext.frontend.relay.converters  # noqa: F401  (registers the converters)
from tvm_ext.errors import UnsupportedOperatorsError
from tvm_ext.frontend.relay.ast import Call, GlobalVar, Op, RelayModule
from tvm_ext.frontend.relay.registry import find_converter
from tvm_ext.frontend.relay.walk import expressions

_REMEDY = "register one with tvm_ext.frontend.relay.registry.converts"


def count_operators(module: RelayModule) -> dict[str, Counter[str]]:
    """Count the calls of operators in everything that ``main`` reaches.

    Returns
    -------
    dict of str to Counter
        Operator -> the number of its calls in each function of the module.
    """
    counts: dict[str, Counter[str]] = {}
    reached, waiting = {"main"}, ["main"]
    while waiting:
        name = waiting.pop()
        for expr in expressions(module.functions[name]):
            if isinstance(expr, Call) and isinstance(expr.callee, Op):
                counts.setdefault(expr.callee.name, Counter())[name] += 1
            elif isinstance(expr, GlobalVar) and expr.name not in reached:
                if expr.name in module.functions:
                    waiting.append(expr.name)
                reached.add(expr.name)
    return counts


def check_operators(module: RelayModule) -> None:
    """Raise UnsupportedOperatorsError with all operators without a converter, and how many."""
    missing = {
        operator: [f"{n} in @{function}" for function, n in sorted(count.items())]
        for operator, count in count_operators(module).items()
        if find_converter(operator) is None
    }
    if missing:
        raise UnsupportedOperatorsError(missing, _REMEDY)
