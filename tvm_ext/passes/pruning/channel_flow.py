"""Follow channels through a function, operator by operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tvm
from tvm import relax

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.elementwise import scalar_name
from tvm_ext.passes.pruning import channel_layers, channel_moves, channel_pointwise, channel_slices
from tvm_ext.passes.pruning.channel_labels import Labels
from tvm_ext.passes.pruning.channel_rule import Rule
from tvm_ext.passes.pruning.channel_shrink import Shrink
from tvm_ext.passes.pruning.channel_step import Channels, Result, Step, each
from tvm_ext.passes.pruning.prunable import Prunable

_RULES: dict[str, Rule] = {
    **channel_layers.RULES,
    **channel_moves.RULES,
    **channel_pointwise.RULES,
    **channel_slices.RULES,
}


def follow(
    mod: tvm.IRModule, layers: Sequence[Prunable], notes: Mapping[str, str], boxes: bool
) -> Channels:
    """Find out which channels of `main` are tied, and which can't go.

    Parameters
    ----------
    mod : tvm.IRModule
    layers : sequence of Prunable
        Of this module.
    notes : Mapping of str to str
        For layers that are to be left alone why, else an empty string.
    boxes : bool
        Whether to tie the channels of shuffles; see `Channels`.

    Notes
    -----
    Elementwise operators tie channels, concatenations join sequences of them, slices pick some.
    Inputs of the model have none that could go, outputs keep theirs, as does whatever an operator
    without a rule reads.
    """
    func = mod["main"]
    channels = Channels({var: layer for layer in layers for var, _ in layer.uses}, notes, boxes)
    for param in func.params:
        channels.values[param] = _none(param.ty)
    for var, expr in df.bindings(func):
        channels.record(var, _followed(channels, var, expr))
    for labels in each(_known(channels, df.result(func))):
        for ids in labels.ids():
            channels.ids.fix(ids, "an output of the model has them")
    return channels


def shrink(mod: tvm.IRModule, channels: Channels, kept: Any) -> tvm.IRModule:
    """Rebuild `main` with the channels that are kept.

    Parameters
    ----------
    mod : tvm.IRModule
    channels : Channels
        Of this module.
    kept : ndarray of bool
        For each id; all of a set or none.
    """
    calls, shrinking = dict(df.bindings(mod["main"])), Shrink(kept, channels.joints)

    def rewrite(_: relax.BlockBuilder, var: relax.Var, expr: Any) -> Any:
        rule = _rule(calls[var])
        return (
            expr if rule is None else rule.shrink(shrinking, Step(channels, var, calls[var]), expr)
        )

    # A rebuilt function returns a copy of its result, and the inside of shuffles has no readers.
    rebuilt = relax.transform.CanonicalizeBindings()(df.rebuild(mod, rewrite))
    return relax.transform.DeadCodeElimination()(rebuilt)


def _followed(channels: Channels, var: Any, expr: Any) -> Result:
    rule = _rule(expr)
    if rule is not None:
        return rule.follow(Step(channels, var, expr))
    if isinstance(expr, relax.Call):
        _fix_arguments(Step(channels, var, expr), expr)
        return _none(var.ty)
    return _known(channels, expr)


def _rule(expr: Any) -> Rule | None:
    """The rule of an operator's call; none of one that isn't understood, or isn't a call."""
    name = df.op_name(expr)
    if name == "relax.concat" and not isinstance(expr.args[0], relax.Tuple):
        return None
    if name in _RULES:
        return _RULES[name]
    return channel_pointwise.ELEMENTWISE if scalar_name(expr) else None


def _fix_arguments(step: Step, call: relax.Call) -> None:
    for arg in df.free_vars(call):
        for labels in each(step.channels.values[arg]):
            step.fix(labels.ids(), "isn't an operator that channels can be followed through")


def _known(channels: Channels, expr: Any) -> Result:
    """The channels of what isn't a call."""
    if isinstance(expr, relax.Tuple):
        return tuple(_known(channels, field) for field in expr.fields)
    if isinstance(expr, relax.TupleGetItem):
        whole = _known(channels, expr.tuple_value)
        assert isinstance(whole, tuple)
        return whole[expr.index]
    return channels.values[expr] if isinstance(expr, relax.Var) else _none(expr.ty)


def _none(ty: Any) -> Result:
    """Labels for a value none of whose channels can go."""
    if isinstance(ty, relax.TupleType):
        return tuple(_none(field) for field in ty.fields)
    return Labels.none(ty.ndim if isinstance(ty, relax.TensorType) else 0)
