"""Every expression of a function, once, without recursion."""

from __future__ import annotations

from collections.abc import Iterator

from tvm_ext.frontend.relay.ast import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Op,
    Tuple,
    TupleGetItem,
    Var,
)


def children(expr: Expr) -> tuple[Expr, ...]:
    """Return the expressions that `expr` is made of, in the order in which they are computed."""
    match expr:
        case Call():
            return (expr.callee, *expr.args)
        case Tuple():
            return expr.fields
        case TupleGetItem():
            return (expr.value,)
        case Let():
            return (expr.value, expr.body)
        case If():
            return (expr.condition, expr.true, expr.false)
        case Function():
            return (expr.body,)
        case Var() | GlobalVar() | Constant() | Op():
            return ()
    raise TypeError(f"{expr!r} is no expression of Relay's")


def expressions(root: Expr) -> Iterator[Expr]:
    """Yield `root` and everything under it; a node that several expressions share comes once."""
    seen = {root}
    stack = [root]
    while stack:
        expr = stack.pop()
        yield expr
        for child in reversed(children(expr)):
            if child not in seen:
                seen.add(child)
                stack.append(child)
