"""The standalone function keeps buffers that lie inside others coherent."""

from __future__ import annotations

import numpy as np
import tvm
from tvm import relax
from tvm.script import tirx as T

from tvm_ext.compile import compile_standalone
from tvm_ext.program import plan_memory
from tvm_ext.program_builder import ProgramBuilder
from tvm_ext.target import resolve


@T.prim_func
def _add(
    a: T.Buffer((32,), "float32"), b: T.Buffer((32,), "float32"), out: T.Buffer((32,), "float32")
) -> None:
    for i in range(32):
        out[i] = a[i] + b[i]


@T.prim_func
def _negate(a: T.Buffer((2, 32), "float32"), out: T.Buffer((64,), "float32")) -> None:
    for i, j in T.grid(2, 32):
        out[i * 32 + j] = -a[i, j]


def test_parts_of_a_buffer() -> None:
    """Two halves are written, one from the other, then read as a whole and returned."""
    value = np.arange(32, dtype="float32")
    builder = ProgramBuilder()
    x = builder.input("x", (32,), "float32")
    constant = builder.constant(value)
    whole = builder.buffer((2, 32), "float32")
    first, second = builder.view(whole, (32,)), builder.view(whole, (32,), offset=128)
    out = builder.buffer((64,), "float32")
    add, negate = builder.kernel("add", _add), builder.kernel("negate", _negate)
    builder.call(add, (x, constant, second), 1, "a")
    builder.call(add, (second, constant, first), 1, "b")
    builder.call(negate, (whole, out), 1, "c")
    builder.program.outputs = {
        "negated": out,
        "second": second,
        "flat": builder.view(whole, (64,)),
        "x": builder.view(x, (4, 8)),
    }
    plan_memory(builder.program)
    code = compile_standalone(builder.program, builder.kernels, builder.constants, resolve())
    main = relax.VirtualMachine(code, tvm.cpu())["main"]
    for seed in range(2):
        given = np.random.default_rng(seed).integers(0, 9, 32).astype("float32")
        got = [tensor.numpy() for tensor in main(tvm.runtime.tensor(given))]
        want = np.concatenate([given + 2 * value, given + value])
        assert np.array_equal(got[0], -want)
        assert np.array_equal(got[1], want[32:])
        assert np.array_equal(got[2], want)
        assert np.array_equal(got[3], given.reshape(4, 8))
