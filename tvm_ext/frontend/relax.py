"""A Relax module with static shapes and its parameters bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import tvm
from tvm import relax, tirx

from tvm_ext.errors import InputShapeError, ModelError
from tvm_ext.frontend.input_shapes import check_shape, check_unknown, dynamic_error

OUTPUT_NAMES = "tvm_ext.output_names"


def load_relax(
    mod: tvm.IRModule,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    params: Mapping[str, np.ndarray] | None = None,
) -> tvm.IRModule:
    """Bind parameters and symbolic dimensions of ``main``; see `tvm_ext.frontend.load_model`.

    Parameters
    ----------
    mod : tvm.IRModule
        A module with a Relax function ``main``; its other functions are kept. It isn't changed.
    input_shapes : Mapping[str, Sequence[int]], optional
        Parameter name of ``main`` -> shape.
    params : Mapping[str, np.ndarray], optional
        Parameter name of ``main`` -> value to bind as a constant.

    Returns
    -------
    tvm.IRModule
    """
    if "main" not in [var.name_hint for var in mod.get_global_vars()]:
        raise ModelError("the module has no function 'main'")
    if not isinstance(mod["main"], relax.Function):
        raise ModelError("the module's function 'main' isn't a Relax function")
    shapes = dict(input_shapes or {})
    if params:
        names = [p.name for p in mod["main"].params]
        unknown = sorted(set(params) - set(names))
        if unknown:
            raise ModelError(f"params has unknown names {unknown}; 'main' has {names}")
        mod = relax.transform.BindParams("main", dict(params))(mod)
    inputs = {p.name: p for p in mod["main"].params}
    check_unknown(shapes, inputs)
    symbols: dict[tirx.Var, int] = {}
    for name, param in inputs.items():
        if isinstance(param.ty, relax.TensorType):
            _match(name, param.ty, shapes.get(name), symbols)
    if symbols:
        mod = relax.transform.BindSymbolicVars(symbols, "main")(mod)
    main = mod["main"]
    if OUTPUT_NAMES not in (main.attrs or {}):
        fields = main.ret_ty.fields if isinstance(main.ret_ty, relax.TupleType) else [None]
        mod = tvm.IRModule(dict(mod.functions_items()), attrs=mod.attrs)
        mod["main"] = main.with_attr(OUTPUT_NAMES, [f"output{i}" for i in range(len(fields))])
    return mod


def _match(
    name: str,
    ty: relax.TensorType,
    shape: Sequence[int] | None,
    symbols: dict[tirx.Var, int],
) -> None:
    """Bind the symbolic dimensions of one parameter to `shape`, adding to `symbols`."""
    if ty.shape is None:
        raise ModelError(f"input {name!r} has no shape in the module, only a rank")
    dims = list(ty.shape)
    if shape is not None:
        shape = check_shape(name, shape, len(dims))
    for i, dim in enumerate(dims):
        if isinstance(dim, tirx.IntImm):
            if shape is not None and int(dim) != shape[i]:
                raise InputShapeError(
                    f"input {name!r}, dimension {i}: the module fixes it at {int(dim)}, "
                    f"input_shapes says {shape[i]}"
                )
            continue
        if shape is None or not isinstance(dim, tirx.Var):
            if dim in symbols:
                continue
            raise dynamic_error(
                name, i, str(dim), [int(d) if isinstance(d, tirx.IntImm) else None for d in dims]
            )
        if symbols.setdefault(dim, shape[i]) != shape[i]:
            raise InputShapeError(
                f"input {name!r}, dimension {i}: {dim} is {shape[i]} here and {symbols[dim]} in "
                "another place"
            )
