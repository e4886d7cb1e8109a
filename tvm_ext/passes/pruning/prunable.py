"""Which layers of a module have weights that can be pruned, and putting other weights there."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import tvm
from tvm import relax

from tvm_ext.errors import PruningError
from tvm_ext.passes import dataflow as df
from tvm_ext.passes.axes import permutation

_CONVS = frozenset({"relax.nn.conv1d", "relax.nn.conv2d", "relax.nn.conv3d"})
_FLOATS = ("float16", "float32", "float64")
# What a block builder names a value for which it is given no name.
_UNNAMED = re.compile(r"(lv|gv)\d*")


@dataclass(frozen=True)
class Prunable:
    """A layer whose weights are a constant.

    Attributes
    ----------
    name : str
        Of the layer's variable in `main`, or of the sum with its bias where only that has a name
        that isn't the builder's. In a module from ONNX these are the names of nodes' outputs.
    kind : str
        ``"conv"`` or ``"matmul"``.
    var : Var
    call : Call
        The first use of the weights.
    weights : ndarray
        (filters, inputs of a filter, *kernel): of a convolution in groups, the inputs of a group.
        The right side of a matmul, (k, n), is seen as (n, k).
    uses : tuple of (Var, Call)
        Everything that reads the weights, in order, the first use included. A recurrent layer,
        which is unrolled over time, has a use for each step.
    axes : tuple of int
        The right side of the calls, transposed so, are the `weights`.
    """

    name: str
    kind: str
    var: Any
    call: Any
    weights: np.ndarray
    uses: tuple[tuple[Any, Any], ...]
    axes: tuple[int, ...]

    @property
    def macs(self) -> int:
        """Multiply-adds of all uses together, when no weight is zero."""
        each = prod(self.weights.shape[1:])
        live = (var for var, call in self.uses if not isinstance(call.args[0], df.Constant))
        return sum(prod(df.shape_of(var)) * each for var in live)


def prunables(mod: tvm.IRModule) -> list[Prunable]:
    """The layers of `main` that can be pruned, in the order in which they are executed.

    They are convolutions of one to three dimensions (also in groups and depthwise) and products
    with a constant matrix on the right: dense layers, the gates of recurrent layers, projections
    of attention. Weights have to be float16, float32 or float64. Layers with the same weights are
    one.

    Parameters
    ----------
    mod : tvm.IRModule
        As `load_model` gives it.
    """
    pairs = df.bindings(mod["main"])
    values, readers = dict(pairs), df.uses(mod["main"])
    uses: dict[Any, list[tuple[Any, Any]]] = {}
    found: dict[Any, tuple[np.ndarray, tuple[int, ...]]] = {}
    digests: dict[Any, bytes] = {}
    for var, expr in pairs:
        read = _weights(expr, values)
        if read is None:
            continue
        constant, view, axes = read
        if constant not in digests:
            array = np.asarray(df.value_of(constant))
            digests[constant] = hashlib.blake2b(np.ascontiguousarray(array).data).digest()
        key = (df.op_name(expr), view, df.shape_of(constant), digests[constant])
        if key not in found:
            found[key] = np.asarray(df.value_of(constant)).transpose(view), axes
        uses.setdefault(key, []).append((var, expr))
    names = _names(mod["main"])
    taken: set[str] = set()
    layers = []
    for key, (weights, axes) in found.items():
        # With constant data it is no layer of the network, but a number that will be folded.
        if all(isinstance(call.args[0], df.Constant) for _, call in uses[key]):
            continue
        var, call = uses[key][0]
        name = _unique(_name(var, names, readers, values), taken)
        kind = "matmul" if key[0] == "relax.matmul" else "conv"
        layers.append(Prunable(name, kind, var, call, weights, tuple(uses[key]), axes))
    return layers


def replace_weights(mod: tvm.IRModule, weights: Mapping[str, np.ndarray]) -> tvm.IRModule:
    """The module with other weights in some layers, in all uses of them.

    Parameters
    ----------
    mod : tvm.IRModule
    weights : Mapping[str, np.ndarray]
        Name of a `Prunable` -> weights in the form of its own; they are converted to the dtype that
        the layer has.

    Raises
    ------
    PruningError
        There is no such layer, or its weights have another shape.
    """
    layers = {layer.name: layer for layer in prunables(mod)}
    constants: dict[Any, Any] = {}
    for name, array in weights.items():
        if name not in layers:
            raise PruningError(f"layer {name!r} isn't there; the model has {', '.join(layers)}")
        layer = layers[name]
        if array.shape != layer.weights.shape:
            raise PruningError(
                f"layer {name}: weights of shape {array.shape}; it has {layer.weights.shape}"
            )
        stored = array.astype(layer.weights.dtype).transpose(np.argsort(layer.axes))
        value = df.constant(stored)
        constants.update((var, value) for var, _ in layer.uses)

    changed = tvm.IRModule(dict(mod.functions_items()), attrs=mod.attrs)
    changed["main"] = _with_constants(mod["main"], constants)
    # A transposition of old weights has lost its reader.
    return relax.transform.DeadCodeElimination()(changed)


def _with_constants(func: relax.Function, constants: Mapping[Any, Any]) -> relax.Function:
    """The function with other constants on the right side of some variables' calls.

    Unlike a rebuilt one, it keeps the names of all variables.
    """
    builder = relax.BlockBuilder()
    blocks = []
    for block in func.body.blocks:
        bindings = []
        for binding in block.bindings:
            var, expr = binding.var, binding.value
            if var in constants:
                call = relax.Call(expr.op, [expr.args[0], constants[var]], expr.attrs, expr.ty_args)
                binding = relax.VarBinding(var, builder.normalize(call))
            bindings.append(binding)
        blocks.append(type(block)(bindings))
    body = relax.SeqExpr(blocks, func.body.body)
    return relax.Function(func.params, body, func.ret_ty, func.is_pure, func.attrs)


def _weights(
    expr: Any, values: Mapping[Any, Any]
) -> tuple[Any, tuple[int, ...], tuple[int, ...]] | None:
    """The constant that a call multiplies with, and two orders of axes that make it the weights.

    One is of the constant itself, the other of the call's argument, which may be a transposition.
    """
    name = df.op_name(expr)
    if name in _CONVS:
        constant, layout = expr.args[1], str(expr.attrs.kernel_layout)
        wanted = "OI" + str(expr.attrs.data_layout).replace("N", "").replace("C", "")
        if sorted(layout) != sorted(wanted) or not _is_float(constant):
            return None
        axes = tuple(layout.index(letter) for letter in wanted)
        return constant, axes, axes
    if name != "relax.matmul":
        return None
    constant, view = expr.args[1], (1, 0)
    transposed = values.get(constant) if isinstance(constant, relax.Var) else None
    if df.op_name(transposed) == "relax.permute_dims" and permutation(transposed) == (1, 0):
        constant, view = transposed.args[0], (0, 1)
    if not _is_float(constant) or len(df.shape_of(constant)) != 2:
        return None
    return constant, view, (1, 0)


def _is_float(expr: Any) -> bool:
    return isinstance(expr, df.Constant) and df.dtype_of(expr) in _FLOATS


def _name(var: Any, names: Mapping[Any, str], readers: Any, values: Any) -> str:
    """A layer's name: see `Prunable`. `names` are the variables' own, where they have one."""
    if var in names:
        return names[var]
    behind = readers.get(var, [])
    if len(behind) == 1 and behind[0] in names:
        total = values[behind[0]]
        if df.op_name(total) == "relax.add" and any(isinstance(a, df.Constant) for a in total.args):
            return names[behind[0]]
    return str(var.name)


def _names(func: relax.Function) -> dict[Any, str]:
    """The variables whose name isn't the builder's; results have that of the model's output."""
    values = dict(df.bindings(func))
    names = {v: str(v.name) for v in values if not _UNNAMED.fullmatch(v.name)}
    value = df.result(func)
    results = list(value.fields) if isinstance(value, relax.Tuple) else [value]
    for place, name in enumerate((func.attrs or {}).get("tvm_ext.output_names", ())):
        # A block builder ends a function with copies of its results.
        while isinstance(values.get(results[place]), relax.Var):
            results[place] = values[results[place]]
        names.setdefault(results[place], str(name))
    return names


def _unique(name: str, taken: set[str]) -> str:
    """A name that no layer has yet; variables of a module written by hand may share theirs."""
    chosen, count = name, 1
    while chosen in taken:
        chosen, count = f"{name}_{count}", count + 1
    taken.add(chosen)
    return chosen
