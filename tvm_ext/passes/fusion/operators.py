"""The operators of a function as a graph, for planning which of them to fuse."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any

from tvm import relax, tirx

from tvm_ext.dtypes import itemsize
from tvm_ext.passes import dataflow as df
from tvm_ext.passes.fusion.kernel_form import is_light
from tvm_ext.passes.fusion.mapping_type import MappingType
from tvm_ext.passes.fusion.moves import Move, moves_of
from tvm_ext.passes.fusion.operator_types import input_types, signature


@dataclass(eq=False)
class Operator:
    """One binding of the function.

    Attributes
    ----------
    index : int
        Its place in the function.
    var, expr
        The binding.
    static : bool
        Whether it is a call of an operator on tensors of known shapes; only those are fused.
    producers, consumers : list of Operator
        Each once, in order.
    read_outside : bool
        Whether the function's result, or what isn't an operator, reads it.
    nbytes : int
        Of its result; 0 when it isn't static.
    """

    index: int
    var: Any
    expr: Any
    static: bool
    producers: list[Operator] = field(default_factory=list)
    consumers: list[Operator] = field(default_factory=list)
    read_outside: bool = False
    nbytes: int = 0

    @cached_property
    def is_light(self) -> bool:
        """Whether it needs no kernel of its own; see `kernel_form.is_light`."""
        return is_light(self.expr)

    @cached_property
    def moves(self) -> tuple[Move, ...] | None:
        """What it does to its argument if it only moves elements, else None."""
        return moves_of(self.expr)

    @property
    def is_view(self) -> bool:
        """Whether it gives the same elements another shape, which needs no kernel."""
        return self.moves is not None and all(move[0] == "reshape" for move in self.moves)

    @cached_property
    def signature(self) -> tuple[Any, ...]:
        """Its operator, attributes, shapes and dtypes."""
        return signature(self.expr)

    @cached_property
    def types(self) -> dict[Any, MappingType]:
        """Its mapping type for each tensor that it reads; only of a static one."""
        return input_types(self.expr)


def operators(func: relax.Function) -> list[Operator]:
    """Every binding of `func`, in order."""
    made: dict[Any, Operator] = {}
    for index, (var, expr) in enumerate(df.bindings(func)):
        static = _is_static(var, expr)
        operator = made[var] = Operator(index, var, expr, static)
        if static:
            operator.nbytes = prod(df.shape_of(var)) * itemsize(df.dtype_of(var))
        for read in dict.fromkeys(df.free_vars(expr)):
            if read in made:
                made[read].consumers.append(operator)
                operator.producers.append(made[read])
                made[read].read_outside |= not static
    for read in df.free_vars(df.result(func)):
        if read in made:
            made[read].read_outside = True
    return list(made.values())


def _is_static(var: Any, expr: Any) -> bool:
    """Whether all tensors of an operator's call have known shapes."""
    if not df.op_name(expr) or not isinstance(var.ty, relax.TensorType):
        return False
    return all(_known(tensor.ty) for tensor in (var, *df.tensors(expr)))


def _known(ty: Any) -> bool:
    values = getattr(ty.shape, "values", None)
    return values is not None and all(isinstance(d, (int, tirx.IntImm)) for d in values)
