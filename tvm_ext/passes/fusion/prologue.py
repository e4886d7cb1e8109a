"""Elementwise steps before an anchor, which its kernel applies to what it reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from tvm.ir import GenericConst

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.elementwise import aligned_shape, scalar_name, tensor_args, to_step
from tvm_ext.schedules.epilogue import Epilogue, Operand, Ref, Step


@dataclass(frozen=True)
class Prologue:
    """The steps from one tensor to the anchor's input.

    Attributes
    ----------
    source : Var
        The tensor, which is value 0 of the steps.
    steps : Epilogue
    constants : tuple of constants
        What the steps' operands are.
    members : tuple of Var
        The operators that the steps stand for.
    """

    source: Any
    steps: Epilogue
    constants: tuple[Any, ...]
    members: tuple[Any, ...]


def read_prologue(exprs: Mapping[Any, Any], result: Any) -> Prologue | str:
    """The prologue that makes `result`, or why its operators aren't one.

    Parameters
    ----------
    exprs : dict of Var to expression
        The group's bindings.
    result : Var
        The anchor's input.
    """
    reader = _Reader(exprs, df.shape_of(result))
    reader.value(result)
    if reader.problem or reader.source is None:
        return reader.problem or "it reads no computed tensor"
    steps = Epilogue(tuple(reader.steps), tuple(reader.operands), 1)
    return Prologue(reader.source, steps, tuple(reader.constants), tuple(reader.refs))


class _Reader:
    def __init__(self, exprs: Mapping[Any, Any], shape: tuple[int, ...]) -> None:
        self.exprs, self.shape = exprs, shape
        self.source: Any = None
        self.steps: list[Step] = []
        self.operands: list[Operand] = []
        self.constants: list[Any] = []
        self.refs: dict[Any, Ref] = {}
        self.problem = ""

    def value(self, var: Any) -> Ref:
        if var not in self.exprs:
            if self.source is not None and not self.source.same_as(var):
                self.problem = "the steps before it read two tensors"
            self.source = var
            return ("value", 0)
        if var in self.refs:
            return self.refs[var]
        expr = self.exprs[var]
        if not scalar_name(expr) or df.shape_of(expr) != self.shape:
            self.problem = f"{var.name} is computed before its anchor"
            return ("value", 0)
        if df.dtype_of(expr) != "float32":
            self.problem = f"{var.name}, a step before it, is {df.dtype_of(expr)}"
        args = [self._argument(expr, i, arg) for i, arg in enumerate(tensor_args(expr))]
        self.steps.append(to_step(expr, args))
        self.refs[var] = ("value", len(self.steps))
        return self.refs[var]

    def _argument(self, expr: Any, position: int, arg: Any) -> Ref:
        if not isinstance(arg, GenericConst):
            if df.shape_of(arg) != self.shape:
                self.problem = "a step before it broadcasts a computed tensor"
            return self.value(arg)
        shape = aligned_shape(expr, position, len(self.shape))
        if prod(shape) == 1:
            return ("const", df.value_of(arg).reshape(()).item())
        if prod(shape) != self.shape[1] or shape[1] != self.shape[1]:
            self.problem = "a step before it has a constant for more than each channel"
        self.operands.append(Operand(shape, df.dtype_of(arg)))
        self.constants.append(arg)
        return ("operand", len(self.operands) - 1)
