"""A One-to-One operator on concatenated values."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, pairwise
from typing import Any

from tvm import relax

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.axes import concat_axis
from tvm_ext.passes.elementwise import scalar_name, tensor_args
from tvm_ext.passes.fusion.capabilities import takes_epilogue
from tvm_ext.passes.rewriting.graph import Graph
from tvm_ext.passes.rewriting.pattern import VIEWS, Fields, Match, Op, Pattern, one_to_one
from tvm_ext.passes.rewriting.rule import Rule, register_rule

# Elementwise operators between a kernel and the concatenation, as many as a layer fuses.
_MOST = 16
_MOVES = frozenset({"permute_dims", *VIEWS.split("|")})


class _Carried(Pattern):
    """Any tensor, with the bindings from the kernel that makes it on.

    `path` starts with an operator that takes an epilogue, goes on with elementwise ones, and ends
    with `moves`. Both are empty where there is no such path, or where others read what lies on it.
    """

    def match(self, expr: Any, graph: Graph, found: Match) -> Iterator[Match]:
        moves: list[Any] = []
        while graph.operator(expr) in _MOVES and graph.readers.get(expr) == 1:
            moves.insert(0, expr)
            expr = graph.values[expr].args[0]
        path = _path(expr, graph, _MOST)
        inner = (*path, *moves) if path else ()
        pairs = [(v, graph.values[v]) for v in inner]
        named = {"path": pairs[: len(path)], "moves": pairs[len(path) :]}
        yield Match(named, inner)


def _path(expr: Any, graph: Graph, most: int) -> tuple[Any, ...]:
    if graph.readers.get(expr) != 1 or expr not in graph.values or not most:
        return ()
    call = graph.values[expr]
    if takes_epilogue(call):
        return (expr,)
    before = tensor_args(call) if scalar_name(call) else ()
    paths = (_path(arg, graph, most - 1) for arg in before if isinstance(arg, relax.Var))
    longest = next((path for path in paths if path), ())
    return (*longest, expr) if longest else ()


@register_rule
class ElementwiseOverConcat(Rule):
    """The kernels that make the parts go on with it, and can store them inside the whole.

    Where one part has no such kernel (an input, a value that others read), the operator would need
    a kernel for that part as it does for all of them.
    """

    name = "elementwise_over_concat"
    formula = "f(concat(a, b)) -> concat(f(a), f(b)), where kernels make a and b"
    pattern = one_to_one(Op("concat", Fields(_Carried(), "parts"), name="concat"))

    def refuses(self, match: Match) -> str:
        f, concat = match["f"], match["concat"]
        if df.shape_of(f) != df.shape_of(concat) or df.dtype_of(f) != df.dtype_of(concat):
            return "its result has another shape or type than the concatenation"
        for number, part in enumerate(match["parts"]):
            if not part["path"]:
                return f"part {number} isn't made by a kernel that goes on with it alone"
            if part["moves"] and "c" in match.named and match.array("c").size > 1:
                return f"part {number} is moved, but not the constant"
        return ""

    def replace(self, match: Match, root: relax.Call, builder: relax.BlockBuilder) -> Any:
        axis = concat_axis(match["concat"])
        fields = match["concat"].args[0].fields
        ends = accumulate((df.shape_of(field)[axis] for field in fields), initial=0)
        parts = []
        for found, (begin, end) in zip(match["parts"], pairwise(ends), strict=True):
            made: dict[Any, Any] = {}
            for var, call in found["path"]:
                made[var] = builder.emit(df.substitute(call, made))
            part = found["path"][-1][0]
            args = list(root.args)
            if "c" in match.named:
                c = _cut(match, axis, begin, end)
                args = [c if df.value_of(arg) is not None else made[part] for arg in args]
            else:
                args[0] = made[part]
            made[part] = builder.emit(relax.Call(root.op, args, root.attrs, root.ty_args))
            for part, call in found["moves"]:
                made[part] = builder.emit(df.substitute(call, made))
            parts.append(made[part])
        return relax.op.concat(parts, axis)


def _cut(match: Match, axis: int, begin: int, end: int) -> Any:
    """What the constant holds for a part of the concatenation."""
    c = match.array("c")
    own = axis - len(df.shape_of(match["f"])) + c.ndim
    if own < 0 or c.shape[own] == 1:  # the same for all
        return match["c"]
    return df.constant(c.take(range(begin, end), own))
