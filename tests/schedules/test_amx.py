"""The matrix unit alone: which targets have it, and one product of tiles against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
import tvm.s_tir
from tvm.script.ir_builder import tirx as T

from tests.schedules.amx_kernels import HIGH, SAPPHIRE, needs_amx
from tests.schedules.kernels import AVX512, NEON
from tvm_ext.schedules import amx, emit
from tvm_ext.target import CpuTarget, resolve


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        (resolve("llvm -mcpu=sapphirerapids"), "precision highest; only high"),
        (resolve(AVX512, "high"), "the target has no AMX for bfloat16, or no AVX-512 beside it"),
        (resolve(NEON, "high"), "the target has no AMX for bfloat16, or no AVX-512 beside it"),
        (
            resolve("llvm -mcpu=sapphirerapids -mattr=-avx512f", "high"),
            "the target has no AMX for bfloat16, or no AVX-512 beside it",
        ),
    ],
    ids=["precision", "avx512", "neon", "avx2"],
)
def test_refusals(target: CpuTarget, reason: str) -> None:
    assert amx.supports_amx(target).reason == reason
    assert amx.supports_amx(SAPPHIRE)


def _product(rows: int) -> Any:
    """(rows, 16 words) times (16 words, 16), as one instruction."""

    def body() -> None:
        left, right = (emit.argument(n, (h, 16), "int32") for n, h in (("a", rows), ("b", 16)))
        out = emit.argument("out", (rows, 16))
        amx.request_permission()
        with amx.configured([rows, rows, 16]):
            amx.zero(0)
            amx.load(1, left, [0, 0])
            amx.load(2, right, [0, 0])
            amx.multiply_add(0, 1, 2)
            amx.store(0, out, [0, 0])

    return tvm.compile(tvm.IRModule({"main": emit.build(body)}), target=SAPPHIRE.tvm).mod


def test_instructions() -> None:
    text = str(_product(16).inspect_source("asm"))
    for name in ("ldtilecfg", "tilezero", "tileloadd", "tdpbf16ps", "tilestored", "tilerelease"):
        assert f"\t{name}" in text


def test_memory_that_instructions_use_is_not_shrunk() -> None:
    """TVM gives a buffer no more than the elements whose use it sees."""

    def body() -> None:
        out = emit.argument("out", (1,))
        memory = emit.workspace((16, 16))
        amx.store(0, memory, [0, 0])
        T.buffer_store(out, memory[3, 2], [0])

    mod = tvm.IRModule({"main": emit.build(body)})
    text = tvm.s_tir.transform.CompactBufferAllocation()(mod).script()
    assert "T.alloc_buffer((16, 16))" in text


@needs_amx
@pytest.mark.parametrize("rows", [1, 5, 16])
def test_a_product_of_tiles(rows: int) -> None:
    """Small integers are bfloat16 values, and so are exact."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(-9, 9, (rows, 32)), rng.integers(-9, 9, (32, 16))
    halves_a, halves_b = (
        (x.astype("float32").view("uint32") >> 16).astype("uint16") for x in (a, b)
    )
    # Neighbours in a row, and neighbours in a column.
    words_a = halves_a.view("int32")
    words_b = halves_b.reshape(16, 2, 16).transpose(0, 2, 1).copy().view("int32").reshape(16, 16)
    out = tvm.runtime.tensor(np.full((rows, 16), np.nan, "float32"))
    _product(rows)["main"](tvm.runtime.tensor(words_a), tvm.runtime.tensor(words_b), out)
    np.testing.assert_array_equal(out.numpy(), a @ b)


@needs_amx
def test_a_refused_permission_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(amx, "REQUEST", 0x1FFF)  # no such request
    arrays = [np.zeros((16, 16), t) for t in ("int32", "int32", "float32")]
    with pytest.raises(RuntimeError, match="the operating system refuses this process AMX"):
        _product(16)["main"](*map(tvm.runtime.tensor, arrays))
    assert HIGH.amx
