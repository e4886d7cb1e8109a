"""Plan -> program and kernels: the one place where a plan becomes code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
import tvm
from tvm import relax, tirx

from tvm_ext.dtypes import itemsize
from tvm_ext.errors import PlanError
from tvm_ext.generic import lower_generic
from tvm_ext.layer_layouts import GENERIC, OFFLOAD, TUNED, layer_blocks, operand_block, reads_as
from tvm_ext.layers import Layer
from tvm_ext.passes import dataflow as df
from tvm_ext.plan import LayerPlan, Plan
from tvm_ext.program import ALIGNMENT, Program, plan_memory
from tvm_ext.program_builder import ProgramBuilder
from tvm_ext.schedules import algorithms
from tvm_ext.schedules.epilogue import Operand
from tvm_ext.schedules.layout import layout_name, operand_shape, stored_shape, to_blocked
from tvm_ext.schedules.layout_transform import LayoutWorkload
from tvm_ext.schedules.slice import SliceWorkload
from tvm_ext.schedules.workload import ConcatWorkload, ViewWorkload, kernel_operands
from tvm_ext.stored_weights import StoredWeights, shape_alone
from tvm_ext.target import CpuTarget
from tvm_ext.transfer.tensor_program import tensor_program

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

    program: Program
    kernels: dict[str, tirx.PrimFunc]
    constants: dict[int, np.ndarray]

    def renamed(self, names: Mapping[str, str]) -> Lowered:
        """The same with other names for its kernels; other functions keep theirs."""
        calls = [replace(c, kernel=names.get(c.kernel, c.kernel)) for c in self.program.calls]
        kernels = {
            names[name]: function.with_attr("global_symbol", names[name])
            for name, function in self.kernels.items()
        }
        return Lowered(replace(self.program, calls=calls), kernels, self.constants)


def lower(
    mod: tvm.IRModule, layers: list[Layer], plan: Plan, target: CpuTarget,
    output_names: list[str], progress: Progress = lambda _: None,
) -> Lowered:  # fmt: skip
    """Lower a grouped module along its plan.

    Parameters
    ----------
    mod : IRModule
        After `UniversalFusion`; `layers` are its layers.
    progress : callable
        Told the name of each layer as its kernel is made.
    """
    builder = ProgramBuilder()
    state = _Lowering(builder, target)
    for param in mod["main"].params:
        number = builder.input(param.name, df.shape_of(param), df.dtype_of(param))
        state.define(param, 0, number)
    by_output = {layer.output: (layer, entry) for layer, entry in zip(layers, plan, strict=True)}
    for var, expr in df.bindings(mod["main"]):
        if var in by_output:
            progress(by_output[var][0].name)
            state.layer(*by_output[var])
        elif isinstance(expr, relax.Var):
            state.alias(var, expr)
        elif isinstance(expr, tvm.ir.GenericConst):
            state.define(var, 0, state.value(expr, 0, "output"))
        elif isinstance(expr, relax.Tuple):
            state.tuples[var] = [state.value(x, 0, "output") for x in expr.fields]
        elif isinstance(expr, relax.TupleGetItem):
            state.define(var, 0, state.tuples[expr.tuple_value][expr.index])
        else:
            raise AssertionError(f"binding {var.name} belongs to no layer")
    outputs = state.outputs(df.result(mod["main"]))
    builder.program.outputs = dict(zip(output_names, outputs, strict=True))
    plan_memory(builder.program)
    return Lowered(builder.program, builder.kernels, builder.constants)


class _Lowering:
    """The buffers of each value, by layout, while the program grows."""

    def __init__(self, builder: ProgramBuilder, target: CpuTarget) -> None:
        self.builder, self.target = builder, target
        # For each value of the model, its buffer in every layout that it has been needed in.
        self.values: dict[Any, dict[int, int]] = {}
        self.tuples: dict[Any, list[int]] = {}
        # Reshapes, each made where a layer reads it: some readers take what is behind it.
        self._views: dict[Any, Layer] = {}
        self._names: dict[Any, str] = {}
        self._weights = StoredWeights(builder, target)

    def define(self, var: Any, block: int, buffer: int) -> None:
        self.values.setdefault(var, {})[block] = buffer

    def alias(self, var: Any, source: Any) -> None:
        """Another name for a value, whose later conversions both share."""
        self.values[var] = self.values.setdefault(source, {})
        if source in self._views:
            self._views[var] = self._views[source]
        if source in self.tuples:
            self.tuples[var] = self.tuples[source]

    def value(self, var: Any, block: int, layer: str) -> int:
        """The buffer of a value in a layout, converted now if it isn't at hand."""
        known = self.values.setdefault(var, {})
        if not known and var in self._views:
            view = self._views[var]
            source = self.value(view.inputs[0], 0, view.name)
            known[0] = self.builder.view(source, view.workload.out_shape)
        if block in known:
            return known[block]
        array = df.value_of(var)
        if array is not None:
            # Blocking, even by nothing, gives an array without dimensions one.
            stored = to_blocked(array, block) if block else array
            known[block] = self.builder.constant(stored)
            return known[block]
        shape = df.shape_of(var)
        source, buffer = next(iter(known.items()))
        if reads_as(shape, source, block):
            converted = self.builder.view(buffer, stored_shape(shape, block))
        else:
            workload = LayoutWorkload(shape, source, block, df.dtype_of(var))
            converted = self.builder.buffer(stored_shape(shape, block), df.dtype_of(var))
            name = self.kernel("layout_transform", workload, None, (source, block))
            self.builder.call(
                name, [buffer, converted], 1, f"{layer}:{layout_name(len(shape), block)}"
            )
        known[block] = converted
        return converted

    def kernel(self, algorithm: str, workload: Any, params: Any, pair: tuple[int, int]) -> str:
        """The name of the kernel for this workload, made once for all layers that share it."""
        params = dict(params) if params is not None else None
        workload = shape_alone(workload)
        key = (algorithm, workload, pair, tuple(sorted((params or {}).items())))
        if key not in self._names:
            alg = algorithms(workload)[algorithm]
            if params is None:
                params = alg.default(workload, self.target)
            function = alg.kernel(workload, params, self.target, pair)
            self._names[key] = self.builder.kernel(algorithm, function)
        return self._names[key]

    def layer(self, layer: Layer, entry: LayerPlan) -> None:
        workload = layer.workload
        if entry.algorithm in (GENERIC, OFFLOAD):
            self._generic_layer(layer)
        elif entry.algorithm == TUNED:
            self._tuned_layer(layer, entry)
        elif isinstance(workload, ViewWorkload):
            self._views[layer.output] = layer
        else:
            pair = layer_blocks(layer, entry)
            if isinstance(workload, ConcatWorkload) and self._join(layer, pair):
                return
            if isinstance(workload, SliceWorkload) and self._part(layer, pair[0]):
                return
            self._kernel_layer(layer, entry, pair)

    def _generic_layer(self, layer: Layer) -> None:
        arguments = [self.value(x, 0, layer.name) for x in layer.arguments]
        outputs = lower_generic(self.builder, layer, arguments, self.target)
        if isinstance(layer.output.ty, relax.TupleType):
            self.tuples[layer.output] = outputs
        else:
            self.define(layer.output, 0, outputs[0])

    def _tuned_layer(self, layer: Layer, entry: LayerPlan) -> None:
        program = tensor_program(layer)
        if isinstance(program, str):
            raise PlanError(f"layer {layer.name}: {TUNED} doesn't apply: {program}")
        args = [self.value(x, 0, layer.name) for x in layer.arguments]
        args += [self._weights.constant(array) for array in program.constants]
        out = self.builder.buffer(df.shape_of(layer.output), df.dtype_of(layer.output))
        name = self.kernel(TUNED, program.workload, entry.params, (0, 0))
        self.builder.call(name, [*args, out], 1, layer.name)
        self.define(layer.output, 0, out)

    def _kernel_layer(self, layer: Layer, entry: LayerPlan, pair: tuple[int, int]) -> None:
        workload = layer.workload
        args = [self.value(x, pair[0], layer.name) for x in layer.inputs]
        args += self._weights.packed(layer, entry)
        for value, operand in zip(layer.operands, kernel_operands(workload), strict=True):
            block = operand_block(layer, operand, pair)
            args.append(self._operand(value, operand, block, layer.name))
        shape = stored_shape(workload.out_shape, pair[1])
        out = self.builder.buffer(shape, df.dtype_of(layer.output))
        name = self.kernel(entry.algorithm, workload, entry.params, pair)
        self.builder.call(name, [*args, out], 1, layer.name)
        # A reshape at the end of the group is another view of what the kernel stores.
        final = stored_shape(df.shape_of(layer.output), pair[1])
        self.define(layer.output, pair[1], self.builder.view(out, final))

    def _operand(self, value: Any, operand: Operand, block: int, layer: str) -> int:
        """An epilogue operand in the output's layout and rank, or flat if it has a view."""
        shape = operand.shape
        if operand.view is not None:
            if isinstance(value, np.ndarray):
                return self.builder.constant(value)
            return self.builder.view(self.value(value, 0, layer), (operand.size,))
        blocked = block if block and shape[1] != 1 else 0
        if isinstance(value, np.ndarray):
            return self.builder.constant(to_blocked(value, blocked))
        if not blocked:
            return self.builder.view(self.value(value, 0, layer), shape)
        if len(df.shape_of(value)) != len(shape):
            raise AssertionError(f"operand of {layer} has rank {len(df.shape_of(value))}")
        return self.builder.view(self.value(value, blocked, layer), operand_shape(shape, blocked))

    def _join(self, layer: Layer, pair: tuple[int, int]) -> bool:
        """Make a concatenation free: its parts are computed in place, inside the result."""
        w, block = layer.workload, pair[0]
        lead = w.shapes[0][: w.axis]
        if prod(lead) != 1 or (block and any(s[1] % block for s in w.shapes[:-1])):
            return False
        parts = [self.value(x, block, layer.name) for x in layer.inputs]
        joined = self.builder.join(parts, stored_shape(w.out_shape, block), w.dtype)
        if joined is None:
            return False
        whole, copies = joined
        for part, place in copies:
            alone = ConcatWorkload((w.shapes[parts.index(part)],), w.axis, w.dtype)
            name = self.kernel("concat", alone, None, pair)
            self.builder.call(name, [part, place], 1, layer.name)
        self.define(layer.output, block, whole)
        return True

    def _part(self, layer: Layer, block: int) -> bool:
        """Make a slice free where it is one run: a view, that starts where kernels may read."""
        w = layer.workload
        rows, begin, _ = w.run(block)
        offset = begin * itemsize(w.dtype)
        if rows != 1 or offset % ALIGNMENT:
            return False
        source = self.value(layer.inputs[0], block, layer.name)
        shape = stored_shape(w.out_shape, block)
        self.define(layer.output, block, self.builder.view(source, shape, offset))
        return True

    def outputs(self, result: Any) -> list[int]:
        """The buffers of what the model returns."""
        fields = list(result.fields) if isinstance(result, relax.Tuple) else [result]
        if len(fields) == 1 and isinstance(fields[0].ty, relax.TupleType):
            return self.tuples[fields[0]]
        return [self.value(x, 0, "output") for x in fields]
