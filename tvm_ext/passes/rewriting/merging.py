"""Find operators that read the same value, and merge them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tvm
from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.passes import dataflow as df
from tvm_ext.passes.rewriting.branch import Branch, Merger, grow
from tvm_ext.passes.rewriting.rule import MergeRule

# Told the rule, the place, and what was done or why nothing was.
Record = Callable[[MergeRule, str, Merger | str], None]


def merge_siblings(mod: tvm.IRModule, rules: Sequence[MergeRule], record: Record) -> tvm.IRModule:
    """Apply rules that merge siblings, each once to every group of branches."""
    mergers = _mergers(mod["main"], rules, record)
    if not mergers:
        return mod
    # The first root of a merger makes what stands in place of all of them.
    merger_of = {root: m for m in mergers for root in m.roots}
    env: dict[Any, Any] = {}
    made: dict[Any, Any] = {}

    def rewrite(builder: relax.BlockBuilder, var: relax.Var, expr: Any) -> Any:
        merger = merger_of.get(var)
        if merger is None:
            new = expr
        elif var in made:
            new = made[var]
        else:
            parts = merger.build(df.substitute(merger.shared, env), builder.emit)
            for root, part in zip(merger.roots, parts, strict=True):
                made[root] = builder.emit(part) if isinstance(part, relax.Call) else part
            new = made[var]
        if isinstance(new, (relax.Call, relax.TupleGetItem)):
            new = builder.emit(new, var.name)
        env[var] = new
        return new

    return relax.transform.DeadCodeElimination()(df.rebuild(mod, rewrite))


def _mergers(func: relax.Function, rules: Sequence[MergeRule], record: Record) -> list[Merger]:
    mergers = []
    taken: set[Any] = set()
    for rule, branches in _groups(func, rules):
        anchors = {branch.calls[0][0] for branch in branches}
        if len(branches) < rule.least or anchors & taken:
            continue
        result = rule.merge(branches)
        record(rule, branches[0].calls[0][0].name, result)
        if isinstance(result, Merger):
            mergers.append(result)
            taken |= anchors
    return mergers


def _groups(
    func: relax.Function, rules: Sequence[MergeRule]
) -> Iterator[tuple[MergeRule, list[Branch]]]:
    """For each rule, the branches that it may merge."""
    values, users = dict(df.bindings(func)), df.uses(func)
    by_operator: dict[str, list[Any]] = {}
    for var, expr in values.items():
        by_operator.setdefault(df.op_name(expr), []).append(var)
    for rule in rules:
        groups: dict[Any, list[Branch]] = {}
        for var in by_operator.get(f"relax.{rule.operator}", ()):
            shared = values[var].args[0]
            if not isinstance(shared, relax.Var) or len(users[shared]) < rule.least:
                continue
            try:
                branch = grow(var, values, users)
            except ModelError:  # of symbolic shape
                continue
            key = rule.key(branch)
            if key is not None:
                groups.setdefault((shared, key), []).append(branch)
        yield from ((rule, branches) for branches in groups.values())
