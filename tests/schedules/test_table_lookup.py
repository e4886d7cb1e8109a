"""`TableLookup`: what its instructions pick, against NumPy's indexing."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from tvm.script.ir_builder import tirx as T

from tests.schedules.kernels import AVX512, HOST, NEON
from tvm_ext.schedules import emit, vectors
from tvm_ext.schedules.table_lookup import TableLookup, table_lookup
from tvm_ext.target import CpuTarget, resolve

AVX2 = resolve("core-avx2")


def test_targets() -> None:
    for target, lanes in ((AVX512, 16), (AVX2, 8)):
        lookup = table_lookup(target)
        assert lookup is not None
        assert (lookup.lanes, lookup.size, lookup.bits) == (lanes, 2 * lanes, 5 if lanes > 8 else 4)
    assert table_lookup(NEON) is None
    assert table_lookup(resolve("llvm -mcpu=x86-64-v2")) is None


def test_words() -> None:
    """Eight indices of four bits in a word, the first lowest."""
    indices = np.arange(9 * 8).reshape(9, 8) % 16
    words = TableLookup(8).pack(indices)
    assert (words.shape, words.dtype) == ((2, 8), "uint32")
    assert words[0, 0] == 0x80808080
    assert words[1].tolist() == list(range(8))


def _picks(lookup: TableLookup, count: int) -> tvm.IRModule:
    lanes = lookup.lanes

    def body() -> None:
        table = emit.argument("table", (lookup.size,))
        words = emit.argument("words", (lookup.words(count), lanes), "uint32")
        out = emit.argument("out", (count, lanes))
        halves = [vectors.load(table, [at], lanes) for at in (0, lanes)]
        for i in range(count):
            word, place = divmod(i, lookup.per_word)
            vector = vectors.load(words, [word, 0], lanes)
            vectors.store(out, lookup.pick(halves, vector, place), [i, 0], lanes)
        T.evaluate(0)

    return tvm.IRModule({"main": emit.build(body)})


@pytest.mark.parametrize("target", [HOST, AVX2], ids=["host", "avx2"])
def test_picks(target: CpuTarget) -> None:
    lookup = table_lookup(target)
    if lookup is None:
        pytest.skip(f"{target.isa} has no lookup")
    rng = np.random.default_rng(0)
    count = 2 * lookup.per_word + 1
    table = rng.standard_normal(lookup.size).astype("float32")
    indices = rng.integers(0, lookup.size, (count, lookup.lanes))
    out = tvm.runtime.tensor(np.zeros((count, lookup.lanes), "float32"))
    module = tvm.compile(_picks(lookup, count), target=target.tvm)
    module["main"](*map(tvm.runtime.tensor, (table, lookup.pack(indices))), out)
    np.testing.assert_array_equal(out.numpy(), table[indices])


@pytest.mark.parametrize(
    ("target", "names"), [(AVX512, ("vpermi2", "vpermt2")), (AVX2, ("vperm",))]
)
def test_instructions(target: CpuTarget, names: tuple[str, ...]) -> None:
    lookup = table_lookup(target)
    assert lookup is not None
    module = tvm.compile(_picks(lookup, 3), target=target.tvm).mod
    text = module.inspect_source("asm")
    picks = [line for line in text.splitlines() if any(name in line for name in names)]
    assert len(picks) >= 3 * (1 if lookup.lanes == 16 else 2)
