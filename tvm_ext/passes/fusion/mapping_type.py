"""Mapping types of operators: how the elements of an output relate to those of each input.

The five types of DNNFusion (Niu et al., "DNNFusion: Accelerating Deep Neural Networks Execution
with Advanced Operator Fusion", 2021), read off the TensorIR that TVM legalises an operator to.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

import tvm
from tvm import relax, sym, tirx

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.fusion.index_map import (
    AXES,
    IndexMapError,
    Read,
    is_one,
    reads,
    reads_memory,
    variables,
)


class MappingType(str, Enum):
    """How output elements depend on the elements of one input.

    `ONE_TO_ONE`: on the element at the same place, up to offsets and strides (slice, pad, concat).
    `REORGANIZE`: on one, each used once, in the same order in memory (reshape, squeeze).
    `SHUFFLE`: on one, each used at most once, in another order (transpose, depth to space, flip).
    `ONE_TO_MANY`: on one, which other output elements may use too (broadcast, gather, nearest).
    `MANY_TO_MANY`: on several (convolution, matmul, reduction, pooling, linear resize).
    """

    ONE_TO_ONE = "One-to-One"
    REORGANIZE = "Reorganize"
    SHUFFLE = "Shuffle"
    ONE_TO_MANY = "One-to-Many"
    MANY_TO_MANY = "Many-to-Many"


# From the simplest to the most complex, by which the type of several dependences is chosen.
_ORDER = tuple(MappingType)


def most_complex(types: Any) -> MappingType:
    """The most complex of some types; One-to-One of none."""
    return max(types, key=_ORDER.index, default=MappingType.ONE_TO_ONE)


def mapping_types(call: relax.Call) -> tuple[MappingType, ...]:
    """The type of an operator for each of its tensor inputs.

    Parameters
    ----------
    call : relax.Call
        A normalised call of a Relax operator with static shapes.

    Returns
    -------
    tuple of MappingType
        One for each tensor argument, fields of tuples in order. Many-to-Many where TVM's
        implementation can't be analysed (sorting, scans, control flow).
    """
    arguments = df.tensors(call)
    function = _legalised(call, arguments)
    if function is None:
        return (MappingType.MANY_TO_MANY,) * len(arguments)
    try:
        written = reads(function)
    except IndexMapError:
        return (MappingType.MANY_TO_MANY,) * len(arguments)
    shapes = [tuple(p.ty.shape) for p in function.params]
    types = []
    for number in range(len(arguments)):
        types.append(
            most_complex(
                _dependence(alternatives, number, shapes[number], shapes[out])
                for out, alternatives in written.items()
            )
        )
    return tuple(types)


def mapping_type(call: relax.Call) -> MappingType:
    """The type of an operator: the most complex of its inputs'."""
    return most_complex(mapping_types(call))


def _legalised(call: relax.Call, arguments: list[Any]) -> tirx.PrimFunc | None:
    """TVM's implementation of a call as one function of its tensors, if it has one."""
    params = [relax.Var(f"p{i}", a.ty) for i, a in enumerate(arguments)]
    fresh = iter(params)

    def replace(arg: Any) -> Any:
        if isinstance(arg, relax.Tuple):
            return relax.Tuple([replace(f) for f in arg.fields])
        return next(fresh) if isinstance(arg.ty, relax.TensorType) else arg

    builder = relax.BlockBuilder()
    with builder.function("main", params):
        with builder.dataflow():
            new = relax.Call(call.op, [replace(a) for a in call.args], call.attrs, call.ty_args)
            out = builder.emit_output(builder.emit(new))
        builder.emit_func_output(out)
    mod = relax.transform.LegalizeOps()(builder.get())
    found = [f for f in mod.functions.values() if isinstance(f, tirx.PrimFunc)]
    if len(found) != 1 or len(found[0].params) <= len(arguments):
        return None
    return found[0]


def _dependence(
    alternatives: list[tuple[Read, ...]],
    number: int,
    source: tuple[Any, ...],
    out: tuple[Any, ...],
) -> MappingType:
    """The type of one output for one input, both given by their shapes."""
    ways: dict[tuple[int, str], Read] = {}
    for together in alternatives:
        own = [read for read in together if read.parameter == number]
        if len(own) > 1 or any(read.reduced for read in own):
            return MappingType.MANY_TO_MANY
        ways.update((read.key, read) for read in own)
    types = [_one(read.indices, source, out) for read in ways.values()]
    # The same element may be found on different ways (reflected padding, x concatenated with x).
    if len(types) > 1:
        types.append(MappingType.ONE_TO_MANY)
    return most_complex(types)


def _one(indices: tuple[Any, ...], source: tuple[Any, ...], out: tuple[Any, ...]) -> MappingType:
    """The type of reading one element at `indices`."""
    if any(reads_memory(i) for i in indices):
        return MappingType.ONE_TO_MANY
    analyzer = sym.Analyzer()
    axes = AXES[: len(out)]
    for axis, extent in zip(axes, out, strict=True):
        analyzer.bind(axis, tvm.ir.Range(0, extent))
    indices = tuple(analyzer.simplify(i) for i in indices)
    wide = {axis for axis, extent in zip(axes, out, strict=True) if not is_one(extent)}
    used = set().union(*(variables(i) for i in indices)) if indices else set()
    if wide - used:
        return MappingType.ONE_TO_MANY
    if len(indices) == len(out) and all(
        _is_strided(index, axis, extent)
        for index, axis, extent in zip(indices, axes, out, strict=True)
    ):
        return MappingType.ONE_TO_ONE
    if analyzer.can_prove_equal(_flat(indices, source), _flat(axes, out)):
        return MappingType.REORGANIZE
    ranges = {a: tvm.ir.Range(0, e) for a, e in zip(axes, out, strict=True)}
    level = sym.iter_affine_map.IterMapLevel.Bijective
    result = sym.detect_iter_map(list(indices), ranges, check_level=level)
    return MappingType.SHUFFLE if len(result.indices) else MappingType.ONE_TO_MANY


def _is_strided(index: Any, axis: Any, extent: Any) -> bool:
    """Whether an index is stride * axis + offset, of positive stride."""
    if is_one(extent):
        return not variables(index)
    if not variables(index) <= {axis}:
        return False
    found = sym.detect_linear_equation(index, [axis])
    return len(found) == 2 and isinstance(found[0], tirx.IntImm) and int(found[0]) > 0


def _flat(indices: tuple[Any, ...], shape: tuple[Any, ...]) -> Any:
    offset: Any = tirx.const(0, "int64")
    for index, extent in zip(indices, shape, strict=True):
        offset = offset * extent + index
    return offset
