"""Plan -> program and kernels: the one place where a plan becomes code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import tvm
from tvm import relax, tirx

from tvm_ext.generic import lower_generic
from tvm_ext.layers import Layer
from tvm_ext.passes import dataflow as df
from tvm_ext.plan import LayerPlan, Plan
from tvm_ext.planner import GENERIC, interchangeable, layer_blocks
from tvm_ext.program import ALIGNMENT, Call, Program, itemsize, plan_memory
from tvm_ext.schedules import algorithms
from tvm_ext.schedules.layout import layout_name, operand_shape, stored_shape, to_blocked
from tvm_ext.schedules.layout_transform import LayoutWorkload
from tvm_ext.schedules.workload import ConcatWorkload, ViewWorkload
from tvm_ext.target import CpuTarget

Progress = Callable[[str], None]


@dataclass
class Lowered:
    """What compiling needs.

    Attributes
    ----------
    program : Program
        Buffers and calls, memory planned.
    kernels : dict of str to PrimFunc
        By the names that the program's calls use.
    constants : dict of int to ndarray
        Contents of the constant buffers.
    """

    program: Program = field(default_factory=Program)
    kernels: dict[str, tirx.PrimFunc] = field(default_factory=dict)
    constants: dict[int, np.ndarray] = field(default_factory=dict)


def lower(
    mod: tvm.IRModule, layers: list[Layer], plan: Plan, target: CpuTarget,
    output_names: list[str], progress: Progress = lambda _: None,
) -> Lowered:  # fmt: skip
    """Lower a grouped module along its plan.

    Parameters
    ----------
    mod : IRModule
        After `FuseGroups`; `layers` are its layers.
    progress : callable
        Told the name of each layer as its kernel is made.
    """
    state = _Lowering(target)
    for param in mod["main"].params:
        number = state.program.add(df.shape_of(param), df.dtype_of(param), "input")
        state.define(param, 0, number)
        state.program.inputs[param.name] = number
    by_output = {layer.output: (layer, entry) for layer, entry in zip(layers, plan, strict=True)}
    for var, expr in df.bindings(mod["main"]):
        if var in by_output:
            progress(by_output[var][0].name)
            state.layer(*by_output[var])
        elif isinstance(expr, relax.Var):
            state.alias(var, expr)
        elif isinstance(expr, relax.Tuple):
            state.tuples[var] = [state.value(x, 0, "output") for x in expr.fields]
        elif isinstance(expr, relax.TupleGetItem):
            state.define(var, 0, state.tuples[expr.tuple_value][expr.index])
        else:
            raise AssertionError(f"binding {var.name} belongs to no layer")
    state.outputs(df.result(mod["main"]), output_names)
    plan_memory(state.program)
    return Lowered(state.program, state.kernels, state.constants)


class _Lowering:
    """The buffers of each value, by layout, while the program grows."""

    def __init__(self, target: CpuTarget) -> None:
        self.target = target
        self.program = Program()
        self.kernels: dict[str, tirx.PrimFunc] = {}
        self.constants: dict[int, np.ndarray] = {}
        # For each value of the model, its buffer in every layout that it has been needed in.
        self.values: dict[Any, dict[int, int]] = {}
        self.tuples: dict[Any, list[int]] = {}
        self._names: dict[Any, str] = {}
        self._written_by_kernel: set[int] = set()

    def define(self, var: Any, block: int, buffer: int) -> None:
        self.values.setdefault(var, {})[block] = buffer

    def alias(self, var: Any, source: Any) -> None:
        """Another name for a value, whose later conversions both share."""
        self.values[var] = self.values.setdefault(source, {})
        if source in self.tuples:
            self.tuples[var] = self.tuples[source]

    def value(self, var: Any, block: int, layer: str) -> int:
        """The buffer of a value in a layout, converted now if it isn't at hand."""
        known = self.values.setdefault(var, {})
        if block in known:
            return known[block]
        array = df.value_of(var)
        if array is not None:
            known[block] = self.constant(to_blocked(array, block))
            return known[block]
        shape = df.shape_of(var)
        source, buffer = next(iter(known.items()))
        if interchangeable(shape, source, block):
            converted = self.program.view(buffer, stored_shape(shape, block))
        else:
            workload = LayoutWorkload(shape, source, block, df.dtype_of(var))
            converted = self.program.add(stored_shape(shape, block), df.dtype_of(var))
            name = self.kernel("layout_transform", workload, None, (source, block))
            self.call(name, [buffer, converted], 1, f"{layer}:{layout_name(len(shape), block)}")
        known[block] = converted
        return converted

    def constant(self, array: np.ndarray) -> int:
        array = np.ascontiguousarray(array)
        number = self.program.add(array.shape, str(array.dtype), "constant")
        self.constants[number] = array
        return number

    def kernel(self, algorithm: str, workload: Any, params: Any, pair: tuple[int, int]) -> str:
        """The name of the kernel for this workload, made once for all layers that share it."""
        params = dict(params) if params is not None else None
        key = (algorithm, workload, pair, tuple(sorted((params or {}).items())))
        if key not in self._names:
            alg = algorithms(workload)[algorithm]
            if params is None:
                params = alg.default(workload, self.target)
            function = alg.kernel(workload, params, self.target, pair)
            self._names[key] = self.add_kernel(algorithm, function)
        return self._names[key]

    def add_kernel(self, prefix: str, function: tirx.PrimFunc) -> str:
        name = f"{prefix}_{len(self.kernels)}"
        self.kernels[name] = function.with_attr("global_symbol", name)
        return name

    def call(
        self, kernel: str, args: list[int], outputs: int, layer: str, packed: bool = False
    ) -> None:
        self.program.calls.append(Call(kernel, tuple(args), outputs, layer, packed))
        self._written_by_kernel.update(args[-outputs:])

    def layer(self, layer: Layer, entry: LayerPlan) -> None:
        workload = layer.workload
        if entry.algorithm == GENERIC:
            lower_generic(self, layer)
        elif isinstance(workload, ViewWorkload):
            source = self.value(layer.inputs[0], 0, layer.name)
            self.define(layer.output, 0, self.program.view(source, workload.out_shape))
        else:
            pair = layer_blocks(layer, entry)
            if isinstance(workload, ConcatWorkload) and self._join(layer, pair):
                return
            self._kernel_layer(layer, entry, pair)

    def _kernel_layer(self, layer: Layer, entry: LayerPlan, pair: tuple[int, int]) -> None:
        workload = layer.workload
        algorithm = algorithms(workload)[entry.algorithm]
        args = [self.value(x, pair[0], layer.name) for x in layer.inputs]
        if layer.weights:
            packed = algorithm.pack(workload, entry.params, self.target, layer.weights)
            args += [self.constant(array) for array in packed]
        epilogue = getattr(workload, "epilogue", None)
        operands = epilogue.operands if epilogue is not None else ()
        for value, operand in zip(layer.operands, operands, strict=True):
            args.append(self._operand(value, operand.shape, pair[1], layer.name))
        out = self.program.add(stored_shape(workload.out_shape, pair[1]), df.dtype_of(layer.output))
        name = self.kernel(entry.algorithm, workload, entry.params, pair)
        self.call(name, [*args, out], 1, layer.name)
        self.define(layer.output, pair[1], out)

    def _operand(self, value: Any, shape: tuple[int, ...], block: int, layer: str) -> int:
        """An epilogue operand in the output's layout and rank."""
        blocked = block if block and shape[1] != 1 else 0
        if isinstance(value, np.ndarray):
            return self.constant(to_blocked(value.reshape(shape), blocked))
        if not blocked or len(df.shape_of(value)) != len(shape):
            buffer = self.value(value, 0, layer)
            if blocked:
                raise AssertionError(f"operand of {layer} has rank {len(df.shape_of(value))}")
            return self.program.view(buffer, shape)
        return self.program.view(self.value(value, blocked, layer), operand_shape(shape, blocked))

    def _join(self, layer: Layer, pair: tuple[int, int]) -> bool:
        """Make a concatenation free: its parts are computed in place, inside the result."""
        w, block = layer.workload, pair[0]
        lead = w.shapes[0][: w.axis]
        if prod(lead) != 1 or (block and any(s[1] % block for s in w.shapes[:-1])):
            return False
        parts = [self.values.get(x, {}).get(block) for x in layer.inputs]
        offsets = np.cumsum([0] + [prod(stored_shape(s, block)) for s in w.shapes])
        offsets = offsets * itemsize(w.dtype)
        ours = {p for p in parts if p is not None and self._free_to_move(p)}
        if len(ours) != len(parts) or any(int(o) % ALIGNMENT for o in offsets[:-1]):
            return False
        whole = self.program.add(stored_shape(w.out_shape, block), w.dtype)
        for part, offset in zip(parts, offsets[:-1], strict=True):
            assert part is not None
            self.program.buffers[part].parent = whole
            self.program.buffers[part].offset = int(offset)
        self.define(layer.output, block, whole)
        self._written_by_kernel.add(whole)
        return True

    def _free_to_move(self, buffer: int) -> bool:
        """Whether a buffer owns its memory and was written by a kernel (or by its parts)."""
        b = self.program.buffers[buffer]
        return b.parent is None and b.kind == "arena" and buffer in self._written_by_kernel

    def outputs(self, result: Any, names: list[str]) -> None:
        fields = list(result.fields) if isinstance(result, relax.Tuple) else [result]
        if len(fields) == 1 and isinstance(fields[0].ty, relax.TupleType):
            numbers = self.tuples[fields[0]]
        else:
            numbers = [self.value(x, 0, "output") for x in fields]
        self.program.outputs = dict(zip(names, numbers, strict=True))
