"""What one kernel computes for a group of operators, if one kernel can.

A kernel is at most one anchor (convolution, product, pool, normalisation), with elementwise steps
on its result. Whatever only moves elements isn't computed at all: it becomes the strides with which
the kernel reads an operand or stores its result. Steps are evaluated at the anchor's positions
(without one, at the result's), so moves are pushed towards what the group reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from tvm import relax

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.elementwise import aligned_shape, scalar_name, tensor_args, to_step
from tvm_ext.passes.fusion.capabilities import anchor_refusal, chain_refusal, operand_refusal
from tvm_ext.passes.fusion.moves import Move, follow, inverse, moves_of
from tvm_ext.passes.fusion.reading import read_through
from tvm_ext.schedules.epilogue import Epilogue, Operand, Ref, Step
from tvm_ext.schedules.strided_view import StridedView

Shape = tuple[int, ...]
Pairs = Sequence[tuple[Any, Any]]


class NoKernel(Exception):
    """Why no single kernel computes a group."""


@dataclass(frozen=True)
class Source:
    """A value from outside the group, and how the kernel reads it."""

    expr: Any
    view: StridedView


@dataclass(frozen=True)
class KernelForm:
    """One kernel.

    Attributes
    ----------
    anchor : tuple of Var and Call, or None
        None when all of it is elementwise.
    inputs : tuple of Source
        The anchor's tensor arguments.
    epilogue : Epilogue
    operands : tuple of expressions
        What the epilogue's operands are, from outside the group; constants included.
    out : StridedView
        Where the element at each of the anchor's positions lies in the result.
    out_shape : tuple of int
    pool : Call or None
        A pool that the kernel computes from the steps' result.
    """

    anchor: tuple[Any, Any] | None
    inputs: tuple[Source, ...]
    epilogue: Epilogue
    operands: tuple[Any, ...]
    out: StridedView
    out_shape: Shape
    pool: Any = None


def is_light(expr: Any) -> bool:
    """Whether an operator needs no kernel of its own: elementwise, or it moves elements."""
    return bool(scalar_name(expr)) or moves_of(expr) is not None


def kernel_form(pairs: Pairs) -> KernelForm:
    """The kernel for a group of operators.

    Parameters
    ----------
    pairs : sequence of (Var, expression)
        The group's bindings in order, the last its result.

    Raises
    ------
    NoKernel
        With the reason.
    """
    anchors = [(var, expr) for var, expr in pairs if not is_light(expr)]
    pool = None
    if len(anchors) == 2 and anchors[1][0].same_as(pairs[-1][0]) and _is_pool_stage(anchors):
        pool = anchors.pop()[1]
        pairs = pairs[:-1]
        if not pool.args[0].same_as(pairs[-1][0]):
            raise NoKernel("the pool reads something else")
    if len(anchors) > 1:
        names = " and ".join(df.op_name(expr).removeprefix("relax.") for _, expr in anchors)
        raise NoKernel(f"{names} have kernels of their own")
    return _Reader(pairs, anchors[0] if anchors else None).form(pool)


def _is_pool_stage(anchors: list[tuple[Any, Any]]) -> bool:
    names = [df.op_name(expr) for _, expr in anchors]
    return names[0] == "relax.nn.conv2d" and names[1].endswith(("max_pool2d", "avg_pool2d"))


class _Reader:
    def __init__(self, pairs: Pairs, anchor: tuple[Any, Any] | None) -> None:
        self.exprs = dict(pairs)
        self.exit = pairs[-1][0]
        self.anchor = anchor
        self.shape = df.shape_of(anchor[0] if anchor else self.exit)
        self.steps: list[Step] = []
        self.operands: list[Operand] = []
        self.sources: list[Any] = []
        self._refs: dict[Any, Ref] = {}
        self._read: set[Any] = set()

    def form(self, pool: Any) -> KernelForm:
        out_shape, out = df.shape_of(self.exit), StridedView.contiguous(self.shape)
        back: tuple[Move, ...] = ()
        inputs: tuple[Source, ...] = ()
        if self.anchor is not None:
            undone = inverse(self._way_out(self.exit) or (), self.shape)
            if undone is None:
                raise NoKernel("it would store a part of the result only, or elements twice")
            back = undone
            placed = follow(StridedView.contiguous(out_shape), back)
            if placed is None:
                raise NoKernel("the result's order has no strides")
            out = placed
            inputs = self._inputs(self.anchor[1])
            given = df.tensors(self.anchor[1])
            direct = all(s.expr.same_as(arg) for s, arg in zip(inputs, given, strict=True))
            reason = anchor_refusal(self.anchor, direct, out, self.exit)
            if reason and len(self.exprs) > 1:
                raise NoKernel(reason)
        self._value(self.exit, back)
        if self.anchor is None and not self.steps:
            raise NoKernel("it only moves elements")
        if missing := [var for var in self.exprs if var not in self._read]:
            raise NoKernel(f"{missing[0].name} isn't part of the result")
        epilogue = Epilogue(
            tuple(self.steps), tuple(self.operands), 0 if self.anchor is None else 1
        )
        if reason := chain_refusal(epilogue):
            raise NoKernel(reason)
        return KernelForm(self.anchor, inputs, epilogue, tuple(self.sources), out, out_shape, pool)

    def _inputs(self, call: relax.Call) -> tuple[Source, ...]:
        """The anchor's arguments, through the moves before it."""
        sources = []
        for arg in df.tensors(call):
            expr, moves = self._before(arg, ())
            if expr in self.exprs:
                raise NoKernel(f"{expr.name} is computed before its anchor")
            view = follow(StridedView.contiguous(df.shape_of(expr)), moves)
            if view is None:
                raise NoKernel(f"the order of {expr.name} has no strides")
            sources.append(Source(expr, view))
        return tuple(sources)

    def _before(self, arg: Any, moves: tuple[Move, ...]) -> tuple[Any, tuple[Move, ...]]:
        """What `arg` is moved from inside the group, and all moves from there on."""
        while isinstance(arg, relax.Var) and (own := moves_of(self.exprs.get(arg))) is not None:
            self._read.add(arg)
            moves = own + moves
            arg = self.exprs[arg].args[0]
        return arg, moves

    def _way_out(self, var: Any) -> tuple[Move, ...] | None:
        """The moves from the anchor's result to `var`; None if `var` doesn't depend on it."""
        assert self.anchor is not None
        moves: tuple[Move, ...] = ()
        seen = [var]
        while seen:
            var, moves = self._before(seen.pop(), moves)
            if var.same_as(self.anchor[0]):
                return moves
            if var not in self.exprs:
                continue
            for arg in tensor_args(self.exprs[var]):
                if self._depends(arg):
                    if df.shape_of(arg) != df.shape_of(var):
                        raise NoKernel("its result is broadcast")
                    seen = [arg]
                    break
        return None

    def _depends(self, arg: Any) -> bool:
        """Whether a value depends on the anchor's."""
        assert self.anchor is not None
        stack, seen = [arg], set()
        while stack:
            var = stack.pop()
            if var.same_as(self.anchor[0]):
                return True
            if var in self.exprs and var not in seen:
                seen.add(var)
                stack.extend(df.free_vars(self.exprs[var]))
        return False

    def _value(self, arg: Any, moves: tuple[Move, ...]) -> Ref:
        """`arg` at the kernel's positions, which are those of `arg` after `moves`."""
        arg, moves = self._before(arg, moves)
        if self.anchor is not None and arg.same_as(self.anchor[0]):
            self._read.add(arg)
            view = follow(StridedView.contiguous(self.shape), moves)
            if view is None or view.shape != self.shape or not view.is_contiguous:
                raise NoKernel("a step reads the result at other positions")
            return ("value", 0)
        if arg not in self.exprs:
            return self._operand(arg, moves)
        key = (arg, moves)
        if key not in self._refs:
            self._read.add(arg)
            expr = self.exprs[arg]
            refs = [
                self._value(a, self._alignment(expr, i) + moves)
                for i, a in enumerate(tensor_args(expr))
            ]
            results = 0 if self.anchor is None else 1
            self._refs[key] = ("value", results + len(self.steps))
            self.steps.append(to_step(expr, refs))
            if prod(df.shape_of(arg)) < prod(self.shape) and Epilogue((self.steps[-1],)).flops > 1:
                raise NoKernel(f"{arg.name} would be computed many times")
        return self._refs[key]

    def _alignment(self, expr: relax.Call, position: int) -> tuple[Move, ...]:
        """How an argument of an elementwise operator is brought to the shape of its result."""
        shape, own = df.shape_of(expr), df.shape_of(tensor_args(expr)[position])
        aligned = aligned_shape(expr, position, len(shape))
        moves: tuple[Move, ...] = ()
        if aligned != own:
            moves = (("reshape", aligned),)
        return moves if aligned == shape else (*moves, ("broadcast", shape))

    def _operand(self, expr: Any, moves: tuple[Move, ...]) -> Ref:
        own = df.shape_of(expr)
        if prod(own) == 1 and (array := df.value_of(expr)) is not None:
            return ("const", array.reshape(()).item())
        operand = read_through(own, moves, self.shape, df.dtype_of(expr))
        if operand is None:
            raise NoKernel("the order of an operand has no strides")
        if reason := operand_refusal(self.anchor, operand, expr):
            raise NoKernel(reason)
        for j, (source, other) in enumerate(zip(self.sources, self.operands, strict=True)):
            if source.same_as(expr) and other == operand:
                return ("operand", j)
        self.operands.append(operand)
        self.sources.append(expr)
        return ("operand", len(self.operands) - 1)
