"""Program and kernels -> machine code: one LLVM module and one VM function that makes the calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tvm
from tvm import relax, tirx
from tvm.relax import transform
from tvm.relax.op import memory
from tvm.script import tirx as T

from tvm_ext.kernel_cache import KernelCache
from tvm_ext.program import Program, aligned
from tvm_ext.target import CpuTarget


def compile_program(
    program: Program,
    kernels: Mapping[str, tirx.PrimFunc],
    target: CpuTarget,
    cache: KernelCache | None = None,
) -> relax.VMExecutable:
    """Compile for `target`; kernels that `cache` has under their names are taken from there.

    The VM function ``main`` takes one tuple with every buffer of the program, and returns nothing:
    it reads and writes that memory.
    """
    builder = relax.BlockBuilder()
    types = [relax.TensorType(list(b.shape), b.dtype) for b in program.buffers]
    state = relax.Var("state", relax.TupleType(types))
    loaded: dict[int, Any] = {}
    with builder.function("main", [state], pure=False):

        def load(number: int) -> Any:
            if number not in loaded:
                loaded[number] = builder.emit(relax.TupleGetItem(state, number))
            return loaded[number]

        for call in program.calls:
            _emit_call(builder, call.kernel, [load(n) for n in call.args])
        builder.emit_func_output(relax.Tuple([]))
    return _build(builder, kernels, target, cache)


def compile_standalone(
    program: Program,
    kernels: Mapping[str, tirx.PrimFunc],
    constants: Mapping[int, np.ndarray],
    target: CpuTarget,
) -> relax.VMExecutable:
    """Compile for `target` into something that needs nothing but TVM's runtime.

    The VM function ``main`` takes the program's inputs and returns its output, or a tuple of its
    outputs. It allocates what it needs, and the constants are bound.
    """
    builder = relax.BlockBuilder()
    params = [
        relax.Var(name, relax.TensorType(list(program.buffers[n].shape), program.buffers[n].dtype))
        for name, n in program.inputs.items()
    ]
    with builder.function("main", params, pure=False):
        tensors = _Tensors(builder, program, constants)
        tensors.of.update(zip(program.inputs.values(), params, strict=True))
        last = _last_uses(program)
        for step, call in enumerate(program.calls):
            args = [tensors.read(number) for number in call.args]
            _emit_call(builder, call.kernel, args)
            for number in call.args[-call.outputs :]:
                tensors.written(number)
            for root in last.get(step, ()):
                tensors.free(root)
        results = [tensors.read(number) for number in program.outputs.values()]
        builder.emit_func_output(results[0] if len(results) == 1 else relax.Tuple(results))
    return _build(builder, kernels, target)


def _emit_call(builder: relax.BlockBuilder, kernel: str, args: list[relax.Expr]) -> None:
    """Call a kernel, or another function that TVM finds by its name."""
    types = [relax.TupleType([])]
    builder.emit(relax.Call(relax.ExternFunc(kernel), args, ty_args=types))


def _build(
    builder: relax.BlockBuilder,
    kernels: Mapping[str, tirx.PrimFunc],
    target: CpuTarget,
    cache: KernelCache | None = None,
) -> relax.VMExecutable:
    """The VM's code, with the kernels' modules imported."""
    modules = (cache or KernelCache(target)).modules(kernels)
    mod = builder.get().with_attr("external_mods", modules)
    return relax.build(mod, target=target.tvm, relax_pipeline=_finish)


class _Tensors:
    """The Relax values that stand for a program's buffers.

    A buffer that owns its memory is an allocation, one at offset 0 of another is a view. Kernels
    take no tensor with an offset, so one further inside is a copy: made from the owner's memory
    before each use, and written back after a kernel wrote it.
    """

    def __init__(
        self, builder: relax.BlockBuilder, program: Program, constants: Mapping[int, np.ndarray]
    ) -> None:
        self.builder, self.program, self.constants = builder, program, constants
        self.of: dict[int, relax.Expr] = {}
        self._storage: dict[int, relax.Var] = {}

    def read(self, number: int) -> relax.Expr:
        """The tensor of a buffer, with the contents that its memory has now."""
        root, offset = self.program.root(number)
        buffer = self.program.buffers[number]
        if offset:
            part = self._allocate(number)
            self._copy(root, offset, number, out_of_root=True)
            return part
        if number not in self.of:
            if number in self.constants:
                array = np.ascontiguousarray(self.constants[number])
                self.of[number] = relax.const(tvm.runtime.tensor(array))
            elif root == number:
                self._allocate(number)
            else:
                shape = relax.ShapeExpr(buffer.shape)
                viewed = memory.view(self.read(root), shape, buffer.dtype)
                self.of[number] = self.builder.emit(viewed)
        return self.of[number]

    def written(self, number: int) -> None:
        """A kernel has written a buffer."""
        root, offset = self.program.root(number)
        if offset:
            self._copy(root, offset, number, out_of_root=False)

    def free(self, root: int) -> None:
        """No call will use this memory any more."""
        for number in [n for n in self.of if self.program.root(n)[0] == root]:
            tensor = self.of.pop(number)
            if root in self._storage:
                self.builder.emit(memory.kill_tensor(tensor))
        if root in self._storage:
            self.builder.emit(memory.kill_storage(self._storage.pop(root)))

    def _allocate(self, number: int) -> relax.Expr:
        if number not in self.of:
            buffer = self.program.buffers[number]
            size = relax.ShapeExpr([aligned(max(buffer.nbytes, 1))])
            storage = self.builder.emit(memory.alloc_storage(size, 0, "global", "uint8"))
            shape = relax.ShapeExpr(buffer.shape)
            self.of[number] = self.builder.emit(
                memory.alloc_tensor(storage, 0, shape, buffer.dtype)
            )
            if self.program.root(number)[0] == number:
                self._storage[number] = storage
        return self.of[number]

    def _copy(self, root: int, offset: int, number: int, out_of_root: bool) -> None:
        part, whole = self._bytes(number), self._bytes(root)
        sizes = (self.program.buffers[n].nbytes for n in (number, root))
        function = self.builder.add_func(_copy_kernel(*sizes, offset, out_of_root), "copy_part")
        self.builder.emit(relax.Call(function, [part, whole]))

    def _bytes(self, number: int) -> relax.Expr:
        tensor = self.of[number] if number in self.of else self.read(number)
        shape = relax.ShapeExpr([self.program.buffers[number].nbytes])
        return self.builder.emit(memory.view(tensor, shape, "uint8"))


def _copy_kernel(part_bytes: int, root_bytes: int, offset: int, out_of_root: bool) -> Any:
    """Bytes from or to a place inside a buffer."""

    @T.prim_func(private=True)
    def into(
        part: T.Buffer((part_bytes,), "uint8"), root: T.Buffer((root_bytes,), "uint8")
    ) -> None:
        for i in range(part_bytes):
            root[offset + i] = part[i]

    @T.prim_func(private=True)
    def out_of(
        part: T.Buffer((part_bytes,), "uint8"), root: T.Buffer((root_bytes,), "uint8")
    ) -> None:
        for i in range(part_bytes):
            part[i] = root[offset + i]

    return out_of if out_of_root else into


def _last_uses(program: Program) -> dict[int, list[int]]:
    """By call, the owning buffers that it is the last to use; outputs live on."""
    last: dict[int, int] = {}
    for step, call in enumerate(program.calls):
        last.update((program.root(number)[0], step) for number in call.args)
    for number in program.outputs.values():
        last.pop(program.root(number)[0], None)
    ends: dict[int, list[int]] = {}
    for root, step in last.items():
        if program.buffers[root].kind == "arena":
            ends.setdefault(step, []).append(root)
    return ends


@tvm.transform.module_pass(opt_level=0, name="FinishProgram")
def _finish(mod: tvm.IRModule, _: tvm.transform.PassContext) -> tvm.IRModule:
    passes = [
        transform.RemovePurityChecking(),
        transform.LowerRuntimeBuiltin(),
        transform.ComputePrimValue(),
        transform.VMShapeLower(),
        transform.AttachGlobalSymbol(),
    ]
    return tvm.transform.Sequential(passes)(mod)
