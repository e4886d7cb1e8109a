"""From a group of operators to the parts of the one kernel that computes it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from tvm import relax

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.elementwise import aligned_shape, tensor_args, to_step
from tvm_ext.passes.fusion.capabilities import (
    anchor_refusal,
    chain_refusal,
    operand_refusal,
    prologue_refusal,
    takes_prologue,
)
from tvm_ext.passes.fusion.channel_shuffle import shuffled, takes_shuffle
from tvm_ext.passes.fusion.kernel_parts import KernelForm, NoKernel, Source
from tvm_ext.passes.fusion.moves import Move, follow, inverse, moves_of
from tvm_ext.passes.fusion.prologue import Prologue, read_prologue
from tvm_ext.passes.fusion.reading import read_through
from tvm_ext.schedules.epilogue import Epilogue, Operand, Ref, Step
from tvm_ext.schedules.strided_view import StridedView

Pairs = Sequence[tuple[Any, Any]]


class GroupReader:
    """Reads a group from its result backwards.

    Parameters
    ----------
    pairs : sequence of (Var, expression)
        The group's bindings in order, the last its result; without a pool stage.
    anchor : tuple of Var and Call, or None
        The one of them that has a loop nest of its own.
    """

    def __init__(self, pairs: Pairs, anchor: tuple[Any, Any] | None) -> None:
        self.exprs = dict(pairs)
        self.exit = pairs[-1][0]
        self.anchor = anchor
        self.shape = df.shape_of(anchor[0] if anchor else self.exit)
        self.steps: list[Step] = []
        self.operands: list[Operand] = []
        self.sources: list[Any] = []
        self.prologue: Prologue | None = None
        self._refs: dict[Any, Ref] = {}
        self._read: set[Any] = set()

    def form(self, pool: Any) -> KernelForm:
        """The kernel, with `pool` as its last stage if there is one; raises `NoKernel`."""
        out_shape, out = df.shape_of(self.exit), StridedView.contiguous(self.shape)
        back: tuple[Move, ...] = ()
        inputs: tuple[Source, ...] = ()
        if self.anchor is not None:
            way = self._way_out(self.exit)
            if way is None:
                raise NoKernel(f"{self.anchor[0].name} isn't part of the result")
            undone = inverse(way, self.shape)
            if undone is None:
                raise NoKernel("it would store a part of the result only, or elements twice")
            back = undone
            out = self._placed(out_shape, back)
            inputs = self._inputs(self.anchor[1])
            given = df.tensors(self.anchor[1])
            if self.prologue:
                given[0] = self.prologue.source
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
        form = KernelForm(
            self.anchor, inputs, epilogue, tuple(self.sources), out, out_shape, pool, self.prologue
        )
        if form.shuffle > 1 and not (pool is None and self.prologue is None):
            raise NoKernel("a kernel that shuffles its channels has no steps before it and no pool")
        return form

    def _placed(self, out_shape: tuple[int, ...], back: tuple[Move, ...]) -> StridedView:
        """Where the anchor's positions lie in the group's result."""
        assert self.anchor is not None
        placed = follow(StridedView.contiguous(out_shape), back)
        if placed is None and out_shape == self.shape and takes_shuffle(self.anchor[1]):
            placed = shuffled(out_shape, back)
        if placed is None:
            raise NoKernel("the result's order has no strides")
        return placed

    def _inputs(self, call: relax.Call) -> tuple[Source, ...]:
        """The anchor's arguments, through the moves before it."""
        sources = []
        for arg in df.tensors(call):
            expr, moves = self._before(arg, ())
            if expr in self.exprs:
                expr = self._processed(expr, call, moved=bool(moves))
            view = follow(StridedView.contiguous(df.shape_of(expr)), moves)
            if view is None:
                raise NoKernel(f"the order of {expr.name} has no strides")
            sources.append(Source(expr, view))
        return tuple(sources)

    def _processed(self, expr: Any, call: relax.Call, moved: bool) -> Any:
        """What the anchor's first argument is made from by a prologue."""
        first = not moved and expr.same_as(df.tensors(call)[0])
        if not first or not takes_prologue(call):
            raise NoKernel(f"{expr.name} is computed before its anchor")
        read = read_prologue(self.exprs, expr)
        if isinstance(read, str):
            raise NoKernel(read)
        if reason := chain_refusal(read.steps) or prologue_refusal(call, read.steps):
            raise NoKernel(reason)
        self.prologue = read
        self._read.update(read.members)
        return read.source

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
