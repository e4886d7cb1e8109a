"""Transposes moved behind what doesn't mind the order of axes, until they meet and cancel.

A network of Relay's in NHWC comes out of the converters with a transpose before and behind every
convolution and pool, one in NCHW16c with a reshape besides. Here each one waits until something
needs its order; elementwise operators, batch norms, pads and concatenations are computed in front
of it. What is left is one transpose at each end of the network, so that it is as fast as the same
network in NCHW.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tvm
from tvm import relax

from tvm_ext.frontend.emit import emit_main
from tvm_ext.frontend.onnx_converters.values import const, constant, shape_of
from tvm_ext.frontend.relax import OUTPUT_NAMES
from tvm_ext.frontend.relay.converters.elementwise import RELAX_NAMES
from tvm_ext.frontend.relay.views import View, before_view, split_runs

_TRANSPOSE = "relax.permute_dims"
_ELEMENTWISE = RELAX_NAMES | {
    "relax.astype",
    "relax.clip",
    "relax.nn.leakyrelu",
    "relax.nn.relu",
    "relax.power",
    "relax.round",
    "relax.where",
}


def sink_transposes(mod: tvm.IRModule) -> tvm.IRModule:
    """Move the transposes of ``main`` towards its end.

    Parameters
    ----------
    mod : tvm.IRModule
        From `emit_main`: one function of one dataflow block, static shapes.

    Returns
    -------
    tvm.IRModule
        It computes the same; parameters and attributes stay.
    """
    main = mod["main"]
    pairs = [(b.var, b.value) for block in main.body.blocks for b in block.bindings]
    if not any(_name(value) == _TRANSPOSE for _, value in pairs):
        return mod
    sinker = _Sinker()

    def convert() -> list[tuple[str, relax.Expr]]:
        for var, value in pairs:
            sinker.visit(var, value)
        result = main.body.body
        fields = sinker.fields(result)
        names = [str(name) for name in main.attrs[OUTPUT_NAMES]]
        return list(zip(names, fields, strict=True))

    return emit_main(sinker.bb, main.params, convert)


@dataclass
class _Sinker:
    bb: relax.BlockBuilder = field(default_factory=relax.BlockBuilder)
    # An old variable -> its new value; where that is a view, it is emitted when it is needed.
    env: dict[relax.Var, relax.Expr] = field(default_factory=dict)
    views: dict[relax.Var, View] = field(default_factory=dict)
    # Batch norms whose first field is a view.
    norms: dict[relax.Var, tuple[int, ...]] = field(default_factory=dict)

    def visit(self, var: relax.Var, value: Any) -> None:
        """Emit one binding, in front of the transposes that it reads if it can be."""
        name = _name(value)
        if name == _TRANSPOSE:
            self.transpose(var, value)
        elif name == "relax.reshape" and self.reshape(var, value):
            return
        elif isinstance(value, relax.Var):
            self.alias(var, value)
        elif isinstance(value, relax.TupleGetItem) and value.tuple_value in self.norms:
            field_of = relax.TupleGetItem(self.env[value.tuple_value], value.index)
            if value.index == 0:
                source = self.bb.emit(field_of)
                self.view(var, source, shape_of(source), self.norms[value.tuple_value])
            else:
                self.env[var] = self.bb.emit(field_of)
        elif not self.sunk(var, value, name):
            self.env[var] = self.bb.emit(self.substitute(value))

    def transpose(self, var: relax.Var, value: relax.Call) -> None:
        source = value.args[0]
        rank = len(shape_of(source))
        axes = value.attrs.axes
        order = tuple(range(rank))[::-1] if axes is None else tuple(int(a) % rank for a in axes)
        inner = self.views.get(source)
        if inner is None:
            self.view(var, self.substitute(source), shape_of(source), order)
        else:
            turned = tuple(inner.order[axis] for axis in order)
            self.view(var, inner.source, inner.shape, turned)

    def reshape(self, var: relax.Var, value: relax.Call) -> bool:
        """Channels split into blocks, or joined again."""
        source, shape = value.args[0], shape_of(var)
        inner = self.views.get(source)
        if inner is None:
            blocks = len(shape) == 5 and len(shape_of(source)) == 4 and constant(source) is None
            if not blocks or split_runs(shape_of(source), shape) is None:
                return False
            self.view(var, self.substitute(source), shape, tuple(range(5)))
            return True
        if inner.order != tuple(range(len(inner.order))) or shape_of(inner.source) != shape:
            return False
        self.env[var] = inner.source
        return True

    def view(
        self, var: relax.Var, source: relax.Expr, shape: Sequence[int], order: tuple[int, ...]
    ) -> None:
        if order == tuple(range(len(order))) and tuple(shape) == shape_of(source):
            self.env[var] = source
        else:
            self.views[var] = View(source, tuple(shape), order)

    def alias(self, var: relax.Var, value: relax.Var) -> None:
        if value in self.views:
            self.views[var] = self.views[value]
        else:
            self.env[var] = self.substitute(value)

    def sunk(self, var: relax.Var, value: Any, name: str) -> bool:
        """Compute an operator on what its views are of; return False if that isn't possible."""
        tensors = _tensors(value)
        seen = [self.views[arg] for arg in tensors if arg in self.views]
        if not seen:
            return False
        first, order = seen[0], seen[0].order
        same = all(view.form == first.form for view in seen)
        if name in _ELEMENTWISE and same:
            return self.elementwise(var, value, first)
        if name == "relax.concat" and len(seen) == len(tensors):
            return self.concatenation(var, value, seen)
        if first.shape != shape_of(first.source):
            return False
        if name == "relax.nn.pad":
            widths = np.asarray([int(w) for w in value.attrs.pad_width]).reshape(-1, 2)
            moved = relax.op.nn.pad(
                seen[0].source,
                widths[np.argsort(order)].reshape(-1).tolist(),
                value.attrs.pad_mode,
                float(value.attrs.pad_value),
            )
            padded = self.bb.emit(moved)
            self.view(var, padded, shape_of(padded), order)
            return True
        if name in ("relax.nn.batch_norm", "relax.nn.prelu") and value.args[0] in self.views:
            return self.along_axis(var, value, name)
        return False

    def elementwise(self, var: relax.Var, value: relax.Call, view: View) -> bool:
        if shape_of(var) != next(shape_of(a) for a in value.args if a in self.views):
            return False
        args = []
        for arg in value.args:
            known = constant(arg)
            if arg in self.views:
                args.append(self.views[arg].source)
            elif known is not None:
                args.append(arg if known.ndim == 0 else const(before_view(known, view)))
            elif isinstance(arg.ty, relax.TensorType):
                return False
            else:
                args.append(arg)
        moved = self.bb.emit(relax.Call(value.op, args, value.attrs, value.ty_args))
        plain = view.shape == shape_of(view.source)
        self.view(var, moved, shape_of(moved) if plain else view.shape, view.order)
        return True

    def concatenation(self, var: relax.Var, value: relax.Call, seen: Sequence[View]) -> bool:
        """Views joined along an axis of theirs that is a source's, or counts its blocks."""
        order = seen[0].order
        axis = order[int(value.attrs.axis) % len(order)]
        runs = [split_runs(shape_of(view.source), view.shape) or [] for view in seen]
        at = next((i for i, run in enumerate(runs[0]) if run[0] == axis), None)
        if at is None or any(view.order != order for view in seen):
            return False
        rest = [view.shape[:axis] + view.shape[axis + 1 :] for view in seen]
        if any(run != runs[0] for run in runs) or any(r != rest[0] for r in rest):
            return False
        joined = self.bb.emit(relax.op.concat([view.source for view in seen], at))
        total = sum(view.shape[axis] for view in seen)
        self.view(var, joined, (*rest[0][:axis], total, *rest[0][axis:]), order)
        return True

    def along_axis(self, var: relax.Var, value: relax.Call, name: str) -> bool:
        """An operator with vectors along one axis, which has another number before the view."""
        seen, attrs = self.views[value.args[0]], value.attrs
        axis = seen.order[int(attrs.axis) % len(seen.order)]
        rest = [self.substitute(arg) for arg in value.args[1:]]
        if name == "relax.nn.prelu":
            moved = self.bb.emit(relax.op.nn.prelu(seen.source, *rest, axis))
            self.view(var, moved, seen.shape, seen.order)
            return True
        normalized = relax.op.nn.batch_norm(
            seen.source,
            *rest,
            axis=axis,
            epsilon=float(attrs.epsilon),
            center=bool(attrs.center),
            scale=bool(attrs.scale),
            momentum=float(attrs.momentum),
            training=bool(attrs.training),
        )
        self.env[var] = self.bb.emit(normalized)
        self.norms[var] = seen.order
        return True

    def substitute(self, expr: Any) -> Any:
        """An expression on new variables; views that it reads are emitted."""
        if isinstance(expr, relax.Var):
            if expr in self.views and expr not in self.env:
                self.env[expr] = self.emitted(self.views[expr])
            return self.env.get(expr, expr)
        if isinstance(expr, relax.Call):
            args = [self.substitute(arg) for arg in expr.args]
            return relax.Call(expr.op, args, expr.attrs, expr.ty_args)
        if isinstance(expr, relax.Tuple):
            return relax.Tuple([self.substitute(part) for part in expr.fields])
        if isinstance(expr, relax.TupleGetItem):
            return relax.TupleGetItem(self.substitute(expr.tuple_value), expr.index)
        return expr

    def emitted(self, view: View) -> relax.Expr:
        source = view.source
        if view.shape != shape_of(source):
            source = self.bb.emit(relax.op.reshape(source, view.shape))
        if view.order == tuple(range(len(view.order))):
            return source
        return self.bb.emit(relax.op.permute_dims(source, list(view.order)))

    def fields(self, result: relax.Expr) -> list[relax.Expr]:
        """The values that the function returns."""
        new = self.substitute(result)
        if isinstance(new, relax.Var):
            bound = self.bb.lookup_binding(new)
            new = bound if isinstance(bound, relax.Tuple) else new
        return list(new.fields) if isinstance(new, relax.Tuple) else [new]


def _name(value: Any) -> str:
    if isinstance(value, relax.Call) and isinstance(value.op, tvm.ir.Op):
        return str(value.op.name)
    return ""


def _tensors(value: Any) -> list[relax.Expr]:
    """The tensors that a call reads, those of a tuple included."""
    found: list[relax.Expr] = []
    for arg in value.args if isinstance(value, relax.Call) else []:
        found += arg.fields if isinstance(arg, relax.Tuple) else [arg]
    return found
