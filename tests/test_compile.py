"""The standalone function keeps buffers that lie inside others coherent."""

from __future__ import annotations

import numpy as np
import tvm
from tvm import relax
from tvm.script import tirx as T

from tvm_ext.compile import compile_standalone
from tvm_ext.program import Call, Program, plan_memory
from tvm_ext.target import resolve


@T.prim_func
def _add(
    a: T.Buffer((32,), "float32"), b: T.Buffer((32,), "float32"), out: T.Buffer((32,), "float32")
) -> None:
    T.func_attr({"global_symbol": "add"})
    for i in range(32):
        out[i] = a[i] + b[i]


@T.prim_func
def _negate(a: T.Buffer((2, 32), "float32"), out: T.Buffer((64,), "float32")) -> None:
    T.func_attr({"global_symbol": "negate"})
    for i, j in T.grid(2, 32):
        out[i * 32 + j] = -a[i, j]


def test_parts_of_a_buffer() -> None:
    """Two halves are written, one from the other, then read as a whole and returned."""
    program = Program()
    x = program.add((32,), "float32", "input")
    constant = program.add((32,), "float32", "constant")
    whole = program.add((2, 32), "float32")
    first, second = program.view(whole, (32,)), program.view(whole, (32,), offset=128)
    out = program.add((64,), "float32")
    program.calls = [
        Call("add", (x, constant, second), 1, "a"),
        Call("add", (second, constant, first), 1, "b"),
        Call("negate", (whole, out), 1, "c"),
    ]
    program.inputs = {"x": x}
    program.outputs = {
        "negated": out,
        "second": second,
        "flat": program.view(whole, (64,)),
        "x": program.view(x, (4, 8)),
    }
    plan_memory(program)
    value = np.arange(32, dtype="float32")
    kernels = {"add": _add, "negate": _negate}
    code = compile_standalone(program, kernels, {constant: value}, resolve())
    main = relax.VirtualMachine(code, tvm.cpu())["main"]
    for seed in range(2):
        given = np.random.default_rng(seed).integers(0, 9, 32).astype("float32")
        got = [tensor.numpy() for tensor in main(tvm.runtime.tensor(given))]
        want = np.concatenate([given + 2 * value, given + value])
        assert np.array_equal(got[0], -want)
        assert np.array_equal(got[1], want[32:])
        assert np.array_equal(got[2], want)
        assert np.array_equal(got[3], given.reshape(4, 8))
