"""What both importers of graphs do with Relax: one function, and the results of converters."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tvm
from tvm import relax

from tvm_ext.frontend.relax import OUTPUT_NAMES


def emit_main(
    bb: relax.BlockBuilder,
    params: Sequence[relax.Var],
    convert: Callable[[], Sequence[tuple[str, relax.Expr]]],
) -> tvm.IRModule:
    """Make the module that an importer returns.

    Parameters
    ----------
    bb : relax.BlockBuilder
        The importer's, still empty.
    params : sequence of relax.Var
        The model's inputs.
    convert : callable
        Emits the model into `bb` and returns its outputs with their names.

    Returns
    -------
    tvm.IRModule
        One Relax function, ``main``.
    """
    with bb.function("main", params=list(params)):
        with bb.dataflow():
            outputs = convert()
            exprs = [expr for _, expr in outputs]
            result = bb.emit_output(exprs[0] if len(exprs) == 1 else relax.Tuple(exprs))
        bb.emit_func_output(result)
    mod = bb.get()
    mod["main"] = mod["main"].with_attrs(
        {"num_input": len(params), OUTPUT_NAMES: [name for name, _ in outputs]}
    )
    # The builder ends a dataflow block with a copy of each output; this drops the copies.
    return relax.transform.CanonicalizeBindings()(mod)


def tensors_of(
    bb: relax.BlockBuilder, result: relax.Expr | Sequence[relax.Expr | None]
) -> list[relax.Expr | None]:
    """Return what a converter returned, an expression of a tuple taken apart."""
    if isinstance(result, list | tuple):
        return list(result)
    result = bb.normalize(result)
    if isinstance(result, relax.Tuple):
        return list(result.fields)
    if isinstance(result.ty, relax.TupleType):
        whole = result if isinstance(result, relax.Var) else bb.emit(result)
        return [relax.TupleGetItem(whole, i) for i in range(len(whole.ty.fields))]
    return [result]
