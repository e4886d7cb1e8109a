"""Which elements of its inputs an element of a TensorIR function's output is computed from."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain, islice, product
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx
from tvm.s_tir.stmt import SBlock

# An expression of more branches than this isn't followed further.
_MOST_ALTERNATIVES = 16
# The position of an output element; maps of different blocks meet in these variables.
AXES = tuple(tirx.Var(f"i{d}", "int64") for d in range(12))


class IndexMapError(Exception):
    """The function isn't a chain of blocks that each write every element of a buffer once."""


@dataclass(frozen=True, eq=False)
class Read:
    """One element of a parameter, read for the output element at `AXES`.

    Attributes
    ----------
    parameter : int
        Which buffer of the function's parameters.
    indices : tuple of PrimExpr
        The element's position, in terms of `AXES` and of reduction variables.
    reduced : bool
        Whether one output element reads many elements through these indices.
    """

    parameter: int
    indices: tuple[Any, ...]
    reduced: bool
    key: tuple[int, str] = field(init=False)

    def __post_init__(self) -> None:
        # TVM's expressions have no equality that a set could use.
        object.__setattr__(self, "key", (self.parameter, str(self.indices)))


# What one output element reads, on one way through the branches of its expression.
Alternative = tuple[Read, ...]


def reads(function: tirx.PrimFunc) -> dict[int, list[Alternative]]:
    """For every parameter that a function writes, the alternatives of what an element reads.

    Parameters
    ----------
    function : PrimFunc
        TensorIR as `relax.transform.LegalizeOps` makes it: blocks in order, every buffer written
        by one block.

    Returns
    -------
    dict of int to list of tuple of Read
        By the written parameter's number. Intermediate buffers are followed back to parameters.
        The reads of one alternative happen together, those of different ones (the branches of an
        `if_then_else`) never.

    Raises
    ------
    IndexMapError
        The function has another form: loops that write in place, calls of extern code.
    """
    numbers = {param: i for i, param in enumerate(function.params)}
    known: dict[Any, list[Alternative]] = {}
    for block in _blocks(function):
        store = block.body
        if not isinstance(store, tirx.BufferStore) or store.buffer in known:
            raise IndexMapError(f"block {block.name_hint} doesn't write one buffer once")
        known[store.buffer] = _of_block(block, known, numbers)
    written = {numbers[b]: found for b, found in known.items() if b in numbers}
    if not written:
        raise IndexMapError("no block writes an output")
    return written


def _blocks(function: tirx.PrimFunc) -> list[Any]:
    found: list[Any] = []
    tvm_ffi.structural_walk(function.body, (SBlock, found.append))
    return [block for block in found if block.name_hint != "root"]


def _of_block(
    block: Any, known: dict[Any, list[Alternative]], numbers: dict[Any, int]
) -> list[Alternative]:
    """What the block's store reads, in canonical axes."""
    store = block.body
    env: dict[Any, Any] = {}
    reduced = set()
    for axis in block.iter_vars:
        if axis.iter_type == tirx.IterVar.CommReduce:
            if is_one(axis.dom.extent):
                env[axis.var] = axis.dom.min
            else:
                reduced.add(axis.var)
    for d, index in enumerate(store.indices):
        if isinstance(index, tirx.Var):
            env[index] = AXES[d]
        elif not isinstance(index, tirx.IntImm):
            raise IndexMapError(f"block {block.name_hint} writes at {index}")
    found: dict[tuple[Any, ...], Alternative] = {}
    for loads in _alternatives(store.value):
        parts: list[list[Alternative]] = []
        for load in loads:
            if load.source.same_as(store.buffer):
                continue
            many = any(variables(i) & reduced for i in load.indices)
            indices = tuple(substitute(i, env) for i in load.indices)
            if load.source in numbers:
                parts.append([(Read(numbers[load.source], indices, many),)])
            elif load.source in known:
                parts.append([_through(a, indices, many) for a in known[load.source]])
            else:
                raise IndexMapError(f"{load.source.name} is read before it is written")
        for choice in _bounded(product(*parts)):
            together = {read.key: read for part in choice for read in part}
            found[tuple(sorted(together))] = tuple(together.values())
    return list(found.values())


def _through(inner: Alternative, indices: tuple[Any, ...], many: bool) -> Alternative:
    """The reads of an intermediate buffer's element at `indices`."""
    env = dict(zip(AXES, indices, strict=False))
    return tuple(
        Read(r.parameter, tuple(substitute(i, env) for i in r.indices), r.reduced or many)
        for r in inner
    )


def _alternatives(expr: Any) -> list[list[Any]]:
    """The buffer loads of an expression, for each way through its branches."""
    if isinstance(expr, tvm.ir.TensorLoad):
        inner = [_alternatives(i) for i in expr.indices]
        return [[expr, *chain(*choice)] for choice in _bounded(product(*inner))]
    if isinstance(expr, tvm.ir.Call) and expr.op.name.endswith(".if_then_else"):
        condition, *branches = expr.args
        return _branch(condition, branches)
    if isinstance(expr, tirx.Select):
        return _branch(expr.condition, [expr.true_value, expr.false_value])
    parts = [_alternatives(child) for child in _children(expr)]
    return [list(chain(*choice)) for choice in _bounded(product(*parts))]


def _branch(condition: Any, branches: list[Any]) -> list[list[Any]]:
    ways = [way for branch in branches for way in _alternatives(branch)]
    return [first + way for first, way in _bounded(product(_alternatives(condition), ways))]


def _children(expr: Any) -> list[Any]:
    if isinstance(expr, tvm.ir.Call):
        return list(expr.args)
    if isinstance(expr, tirx.Let):
        return [substitute(expr.body, {expr.var: expr.value})]
    names = ("a", "b", "value")
    return [getattr(expr, n) for n in names if isinstance(getattr(expr, n, None), tvm.ir.Expr)]


def _bounded(choices: Any) -> list[Any]:
    found = list(islice(choices, _MOST_ALTERNATIVES + 1))
    if len(found) > _MOST_ALTERNATIVES:
        raise IndexMapError(f"more than {_MOST_ALTERNATIVES} alternatives")
    return found


def variables(expr: Any) -> set[Any]:
    """The variables in an expression."""
    found: set[Any] = set()
    tvm_ffi.structural_walk(expr, (tirx.Var, found.add))
    return found


def reads_memory(expr: Any) -> bool:
    """Whether an index is itself read from a tensor."""
    found: list[Any] = []
    tvm_ffi.structural_walk(expr, (tvm.ir.TensorLoad, found.append))
    return bool(found)


def substitute(expr: Any, env: dict[Any, Any]) -> Any:
    """An expression with the variables of `env` replaced."""
    return tvm_ffi.structural_map(expr, (tirx.Var, lambda var: env.get(var, var)))


def is_one(extent: Any) -> bool:
    """Whether an extent is known to be 1."""
    return isinstance(extent, tirx.IntImm) and int(extent) == 1
