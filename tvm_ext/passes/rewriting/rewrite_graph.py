"""Apply rewrite rules to a graph until none finds anything."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import tvm
import tvm_ffi
from tvm import relax

from tvm_ext.errors import ModelError, OptionError
from tvm_ext.passes import dataflow as df
from tvm_ext.passes.rewriting.branch import Merger
from tvm_ext.passes.rewriting.cost import Cost, cost
from tvm_ext.passes.rewriting.graph import Graph
from tvm_ext.passes.rewriting.merging import merge_siblings
from tvm_ext.passes.rewriting.pattern import ANY, Match
from tvm_ext.passes.rewriting.rule import Described, MergeRule, Rule, rules

# Sweeps over the graph; each rule strictly lowers the cost, so that this only bounds the time.
_MOST_SWEEPS = 10


@dataclass(frozen=True)
class Application:
    """One use of a rule: where, and what the operators in question cost before and after."""

    rule: str
    place: str
    before: Cost
    after: Cost


@dataclass(frozen=True)
class Refusal:
    """A pattern that was found, and why its rule left it alone."""

    rule: str
    place: str
    reason: str


@tvm.transform.module_pass(opt_level=0, name="RewriteGraph")
class RewriteGraph:
    """Rewrite `main` by the registered rules where that saves operations or memory traffic.

    Parameters
    ----------
    fast_math : bool
        Also use rules that can change results where numbers overflow, are NaN or zero.
    without : collection of str
        Names of rules to leave out.
    also : collection of str
        Names of optional rules to use, such as ``hard_swish``, which computes another function
        than the model does; docs/fusion.md says how far off it is.

    Attributes
    ----------
    applications : list of Application
        What has been done, in order, since the pass was made.
    refusals : list of Refusal
        What the last sweep over the graph left alone.

    Raises
    ------
    OptionError
        `without` names no rule, or `also` none that is optional.
    """

    def __init__(
        self,
        fast_math: bool = False,
        without: Collection[str] = (),
        also: Collection[str] = (),
    ) -> None:
        known = rules()
        _check_names("without", without, list(known))
        _check_names("also", also, [r.name for r in known.values() if r.optional])
        self.applications: list[Application] = []
        self.refusals: list[Refusal] = []
        self._by_root: dict[str, list[Rule]] = {}
        self._mergers: list[MergeRule] = []
        for rule in known.values():
            if rule.name in without or (rule.optional and rule.name not in also):
                continue
            if fast_math or not rule.fast_math:
                self._use(rule)

    def _use(self, rule: Described) -> None:
        if isinstance(rule, Rule):
            for operator in rule.pattern.operators:
                self._by_root.setdefault(operator, []).append(rule)
        elif isinstance(rule, MergeRule):
            self._mergers.append(rule)

    def transform_module(self, mod: tvm.IRModule, _: Any) -> tvm.IRModule:
        """Rewrite `main`."""
        for _sweep in range(_MOST_SWEEPS):
            before = len(self.applications)
            self.refusals.clear()
            mod = self._sweep(merge_siblings(mod, self._mergers, self._merged))
            if len(self.applications) == before:
                break
        return mod

    def _merged(self, rule: MergeRule, place: str, result: Merger | str) -> None:
        if isinstance(result, Merger):
            self.applications.append(Application(rule.name, place, result.before, result.after))
        else:
            self.refusals.append(Refusal(rule.name, place, result))

    def _sweep(self, mod: tvm.IRModule) -> tvm.IRModule:
        users = df.uses(mod["main"])
        graph = Graph()

        def rewrite(builder: relax.BlockBuilder, var: relax.Var, expr: Any) -> Any:
            if isinstance(expr, relax.Call):
                expr = builder.normalize(expr)
            new = self._rewritten(builder, graph, var, expr)
            if isinstance(new, (relax.Call, relax.TupleGetItem)):
                call, new = new, builder.emit(new, var.name)
                graph.bind(new, call, 0)
            if isinstance(new, relax.Var):
                graph.add_readers(new, len(users.get(var, ())))
            return new

        return relax.transform.DeadCodeElimination()(df.rebuild(mod, rewrite))

    def _rewritten(
        self, builder: relax.BlockBuilder, graph: Graph, var: relax.Var, expr: Any
    ) -> Any:
        for rule in self._candidates(expr):
            reason = ""
            for match in rule.pattern.match(expr, graph, Match()):
                try:
                    reason = rule.refuses(match)
                    new = None if reason else self._replaced(builder, graph, var, expr, rule, match)
                except ModelError as error:  # a symbolic shape that the rule has to know
                    new, reason = None, str(error)
                if new is not None:
                    return new
                reason = reason or "it saves nothing"
            if reason:
                self.refusals.append(Refusal(rule.name, var.name, reason))
        return expr

    def _candidates(self, expr: Any) -> Iterator[Rule]:
        name = df.op_name(expr)
        if name:
            yield from self._by_root.get(ANY, ())
            yield from self._by_root.get(name.removeprefix("relax."), ())

    def _replaced(
        self,
        builder: relax.BlockBuilder,
        graph: Graph,
        var: relax.Var,
        expr: Any,
        rule: Rule,
        match: Match,
    ) -> Any:
        """The rule's replacement, recorded; None if it isn't cheaper."""
        recorder = _Recorder(builder)
        new = builder.normalize(rule.replace(match, expr, recorder))
        if not tvm_ffi.structural_equal(var.ty, new.ty):
            raise ModelError(f"the type would change from {var.ty} to {new.ty}")
        dying = {v: graph.values[v] for v in _dying(match, expr, graph)}
        before, after = cost(dying, expr), cost(recorder.calls, new)
        if not after.less_than(before):
            return None
        self.applications.append(Application(rule.name, var.name, before, after))
        for made, call in recorder.calls.items():
            graph.bind(made, call, 0 if made.same_as(new) else 1)
        return new


def _check_names(option: str, names: Collection[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            raise OptionError(f"{option}={name!r} is no rule; there are: {', '.join(known)}")


class _Recorder:
    """A block builder that remembers what was emitted; what isn't used is dead code later."""

    def __init__(self, builder: relax.BlockBuilder) -> None:
        self._builder = builder
        self.calls: dict[Any, Any] = {}

    def emit(self, expr: Any) -> relax.Var:
        var = self._builder.emit(expr)
        self.calls[var] = self._builder.lookup_binding(var)
        return var


def _dying(match: Match, root: Any, graph: Graph) -> list[Any]:
    """The matched variables that only the root and other such variables read."""
    dead: list[Any] = []
    waiting = list(dict.fromkeys(match.inner))
    found = True
    while found:
        readers = [root, *(graph.values[var] for var in dead)]
        ready = [
            var
            for var in waiting
            if sum(list(df.free_vars(r)).count(var) for r in readers) >= graph.readers[var]
        ]
        dead += ready
        waiting = [var for var in waiting if var not in ready]
        found = bool(ready)
    return dead
