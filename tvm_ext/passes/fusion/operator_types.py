"""Mapping types by operator, computed once for all calls that look alike."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from tvm import relax

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.elementwise import scalar_name
from tvm_ext.passes.fusion.mapping_type import MappingType, mapping_types


def signature(call: relax.Call) -> tuple[Any, ...]:
    """Operator, attributes, shapes and dtypes of a call: what its mapping types follow from."""
    return (df.op_name(call), str(call.attrs), tuple(_described(a) for a in call.args))


class _Call:
    """A call, equal to others with the same operator, attributes, shapes and dtypes."""

    def __init__(self, call: relax.Call) -> None:
        # Without the model's own tensors, which the cache would keep alive.
        args = [_blank(arg) for arg in call.args]
        if scalar_name(call):
            args = _canonical(args)
        self.call = relax.Call(call.op, args, call.attrs, call.ty_args)
        self.key = signature(self.call)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Call) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def input_types(call: relax.Call) -> dict[Any, MappingType]:
    """The mapping type of a call for each tensor that it reads, the most complex if read twice."""
    found: dict[Any, MappingType] = {}
    order = list(MappingType)
    for tensor, own in zip(df.tensors(call), _types(_Call(call)), strict=True):
        known = found.get(tensor, own)
        found[tensor] = max(known, own, key=order.index)
    return found


def _blank(arg: Any) -> Any:
    if isinstance(arg, relax.Tuple):
        return relax.Tuple([_blank(field) for field in arg.fields])
    return relax.Var("x", arg.ty) if isinstance(arg.ty, relax.TensorType) else arg


def _canonical(args: list[Any]) -> list[Any]:
    """Arguments of an elementwise call with the smallest extents that are equal where theirs are.

    Which dimensions are broadcast is all that its types depend on.
    """
    extents = {1: 1}
    renamed = []
    for arg in args:
        if isinstance(arg, relax.Var):
            shape = [extents.setdefault(n, len(extents) + 1) for n in df.shape_of(arg)]
            arg = relax.Var("x", relax.TensorType(shape, df.dtype_of(arg)))
        renamed.append(arg)
    return renamed


def _described(arg: Any) -> str:
    if isinstance(arg, relax.Tuple):
        return f"({', '.join(_described(field) for field in arg.fields)})"
    return str(arg.ty) if isinstance(arg.ty, relax.TensorType) else str(arg)


@lru_cache(maxsize=4096)
def _types(call: _Call) -> tuple[MappingType, ...]:
    return mapping_types(call.call)
