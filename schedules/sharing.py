"""Expressions whose repeated parts are computed once in the tree as well, by `Let` bindings.

An expression built in Python is a graph: `x * x` holds the same `x` twice. TVM's passes walk it as
a tree, so that a polynomial of an exponential of a polynomial grows exponentially: GELU took 25 s
to compile as it stood.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tvm import tirx
from tvm.ir import Call

from tvm_ext.schedules.scalar_math import dtype_of

_Leaf = (tirx.Var, tirx.IntImm, tirx.FloatImm)


def _children(node: tirx.Expr) -> Sequence[tirx.Expr]:
    """The operands; a load's indices are left alone, they belong to the loops around it."""
    if isinstance(node, tirx.Select):
        return (node.condition, node.true_value, node.false_value)
    if isinstance(node, tirx.Cast):
        return (node.value,)
    if isinstance(node, tirx.Not):
        return (node.a,)
    if isinstance(node, Call):
        # A lazy branch stays whole: what it guards mustn't be evaluated outside of it.
        return () if node.op.name.endswith(".if_then_else") else tuple(node.args)
    if hasattr(node, "a") and hasattr(node, "b"):
        return (node.a, node.b)
    return ()


def _rebuilt(node: tirx.Expr, children: Sequence[tirx.Expr]) -> tirx.Expr:
    """`node` with other operands."""
    if isinstance(node, tirx.Cast):
        return tirx.Cast(dtype_of(node), children[0])
    if isinstance(node, Call):
        return Call(node.op, list(children), node.attrs, node.ty_args, ret_ty=node.ty)
    return type(node)(*children)


def share(root: tirx.Expr) -> tirx.Expr:
    """The same value with a `Let` for each node that has several users.

    Each `Let` stands at the innermost node that all uses lie below. Further out it would cost what
    it saves: TVM simplifies each value with the variables around it replaced by theirs. A chain
    of such functions still takes five times as long for each.

    Only pure, defined-everywhere operations may occur: a binding is evaluated even where a
    `Select` doesn't take it.
    """
    order: list[tirx.Expr] = []
    users: dict[int, list[int]] = {}

    def visit(node: tirx.Expr) -> None:
        for child in _children(node):
            seen = _key(child) in users
            users.setdefault(_key(child), []).append(_key(node))
            if not seen:
                visit(child)
        order.append(node)

    visit(root)
    places = _dominators(order, users)
    values: dict[int, tirx.Expr] = {}
    bindings: dict[int, list[tuple[tirx.Var, tirx.Expr]]] = {}
    names = 0
    for node in order:
        key, children = _key(node), _children(node)
        value = _rebuilt(node, [values[_key(c)] for c in children]) if children else node
        for var, bound in reversed(bindings.get(key, [])):
            value = tirx.Let(var, bound, value)
        # TVM's analyser can't bind a vector of booleans; what they are made from is bound.
        bindable = not isinstance(node, _Leaf) and str(node.ty) not in ("bool", "string")
        if bindable and len(users.get(key, ())) > 1:
            var = tirx.Var(f"t{names}", dtype_of(node))
            names += 1
            bindings.setdefault(places[key], []).append((var, value))
            value = var
        values[key] = value
    return values[_key(root)]


def _key(node: tirx.Expr) -> int:
    """The identity of a node: expressions compare by `==` into expressions."""
    return int(node.__hash__())


def _dominators(order: Sequence[tirx.Expr], users: Mapping[int, list[int]]) -> dict[int, int]:
    """For each node but the last of `order` the nearest node that all paths to it pass.

    `order` has every node after its operands. Cooper, Harvey and Kennedy, "A Simple, Fast
    Dominance Algorithm" (2001), which needs a single sweep on a graph without cycles.
    """
    rank = {_key(node): i for i, node in enumerate(order)}
    above: dict[int, int] = {}
    for node in reversed(order[:-1]):
        first, *rest = users[_key(node)]
        for other in rest:
            while first != other:
                if rank[first] < rank[other]:
                    first = above[first]
                else:
                    other = above[other]
        above[_key(node)] = first
    return above
