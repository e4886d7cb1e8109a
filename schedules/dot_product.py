"""Integer multiply-accumulate instructions: several channels of one position in each 32-bit lane.

A data *word* holds `group` neighbouring input channels of one position, a weight word the same
channels of one output channel. One instruction adds the products of a word with `lanes` weight
words to `lanes` int32 sums. The bytes that a unit multiplies are unsigned, signed or any, and so
activations are shifted by `shift` first; 128 times the sum of the weights goes into the bias.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import numpy as np
from tvm import tirx

from tvm_ext.schedules import vectors
from tvm_ext.target import CpuTarget, cpu_features


@dataclass(frozen=True)
class DotProduct:
    """One instruction.

    Attributes
    ----------
    name : str
        The processor's own.
    intrinsic : str
        LLVM's, of (sums, data, weights); empty for a plain multiplication.
    group : int
        Channels in a word: 4 of 8 bits, 2 of 16, or 1 of 32.
    unsigned : bool or None
        The sign of its 8-bit activations; None where they are widened before, whatever they are.
    """

    name: str
    intrinsic: str
    group: int
    unsigned: bool | None

    def shift(self, dtype: str) -> int:
        """What has to be added to activations of `dtype` before they are multiplied."""
        if self.unsigned is None or self.unsigned == (dtype == "uint8"):
            return 0
        return 128 if self.unsigned else -128

    def words(self, channels: int) -> int:
        """Words that hold so many channels."""
        return -(-channels // self.group)

    def pack(self, values: np.ndarray) -> np.ndarray:
        """Weight words, int32 (..., words), of int8 (..., channels); missing ones are zero."""
        missing = self.words(values.shape[-1]) * self.group - values.shape[-1]
        padded = np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, missing)])
        wide = np.ascontiguousarray(padded.astype(f"int{32 // self.group}"))
        words: np.ndarray = wide.view("int32")
        return words

    def word(self, value: int) -> int:
        """The int32 word whose channels all have this (shifted) value."""
        bits = 32 // self.group
        lanes = (value & ((1 << bits) - 1)) << bits * np.arange(self.group, dtype="int64")
        total = int(lanes.sum())
        return total - (1 << 32) if total >= 1 << 31 else total

    def accumulate(
        self, total: tirx.Expr, data: tirx.Expr, weights: tirx.Expr, lanes: int
    ) -> tirx.Expr:
        """``total + data . weights``; all are int32 vectors of `lanes`."""
        if not self.intrinsic:
            return total + data * weights
        bits, count = 32 // self.group, lanes * self.group
        sign = "u" if self.unsigned else ""
        left = vectors.reinterpret(data, f"{sign}int{bits}", count)
        right = vectors.reinterpret(weights, f"int{bits}", count)
        if self.group == 2:
            return total + tirx.call_llvm_pure_intrin(f"int32x{lanes}", self.intrinsic, left, right)
        return tirx.call_llvm_pure_intrin(f"int32x{lanes}", self.intrinsic, total, left, right)


_WIDENED = "vpmaddwd"
_MULTIPLY = DotProduct("multiply", "", 1, None)


def tile_target(target: CpuTarget) -> CpuTarget:
    """The target with the registers that a tile may use: widened products need one on the way."""
    spare = 0 if dot_product(target).group == 4 else 2
    return replace(target, registers=target.registers - spare)


def dot_product(target: CpuTarget) -> DotProduct:
    """The instruction with the most products that a CPU has for its whole vectors.

    AVX2's ``vpmaddubsw`` isn't taken: its sums of two products saturate at 16 bits.
    """
    on = _features(target)
    if target.isa == "avx512":
        if "avx512vnni" in on:
            return DotProduct("vpdpbusd", "llvm.x86.avx512.vpdpbusd.512", 4, True)
        if "avx512bw" in on:
            return DotProduct(_WIDENED, "llvm.x86.avx512.pmaddw.d.512", 2, None)
    elif target.isa == "avx2":
        if "avxvnni" in on:
            return DotProduct("vpdpbusd", "llvm.x86.avx512.vpdpbusd.256", 4, True)
        return DotProduct(_WIDENED, "llvm.x86.avx2.pmadd.wd", 2, None)
    elif target.isa == "sse":
        return DotProduct("pmaddwd", "llvm.x86.sse2.pmadd.wd", 2, None)
    elif "dotprod" in on:
        return DotProduct("sdot", "llvm.aarch64.neon.sdot.v4i32.v16i8", 4, False)
    return _MULTIPLY


@functools.lru_cache(maxsize=16)
def _features(target: CpuTarget) -> frozenset[str]:
    return frozenset(cpu_features(target.llvm))
