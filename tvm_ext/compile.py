"""Program and kernels -> machine code: one LLVM module and one VM function that makes the calls."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relax, tirx
from tvm.relax import transform

from tvm_ext.program import Program
from tvm_ext.target import CpuTarget


def compile_program(
    program: Program, kernels: dict[str, tirx.PrimFunc], target: CpuTarget
) -> relax.VMExecutable:
    """Compile for `target`.

    The VM function ``main`` takes one tuple with every buffer of the program, and returns nothing:
    it reads and writes that memory.
    """
    builder = relax.BlockBuilder()
    types = [relax.TensorType(list(b.shape), b.dtype) for b in program.buffers]
    state = relax.Var("state", relax.TupleType(types))
    loaded: dict[int, Any] = {}
    with builder.function("main", [state], pure=False):
        functions = {name: builder.add_func(func, name) for name, func in kernels.items()}

        def load(number: int) -> Any:
            if number not in loaded:
                loaded[number] = builder.emit(relax.TupleGetItem(state, number))
            return loaded[number]

        for call in program.calls:
            callee = relax.ExternFunc(call.kernel) if call.packed else functions[call.kernel]
            types_of = [relax.TupleType([])] if call.packed else None
            builder.emit(relax.Call(callee, [load(n) for n in call.args], ty_args=types_of))
        builder.emit_func_output(relax.Tuple([]))
    return relax.build(builder.get(), target=target.tvm, relax_pipeline=_finish)


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
