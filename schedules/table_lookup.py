"""Vectors whose lanes are picked from a table that vector registers hold, each by its own index.

The index of a lane is a few low bits of a 32-bit word; what is above them doesn't matter, so that
one word holds several indices, and a shift brings up the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from tvm import tirx

from tvm_ext.schedules import vectors
from tvm_ext.target import CpuTarget

_WORD_BITS = 32


@dataclass(frozen=True)
class TableLookup:
    """The instructions of one vector unit.

    Attributes
    ----------
    lanes : int
        float32 values in a vector; the table has two vectors.
    """

    lanes: int

    @property
    def size(self) -> int:
        """Values in the table."""
        return 2 * self.lanes

    @property
    def bits(self) -> int:
        """Bits of an index."""
        return self.size.bit_length() - 1

    @property
    def per_word(self) -> int:
        """Indices that a word holds."""
        return _WORD_BITS // self.bits

    def words(self, indices: int) -> int:
        """Words for so many indices."""
        return -(-indices // self.per_word)

    def pack(self, indices: np.ndarray) -> np.ndarray:
        """Words of indices.

        Parameters
        ----------
        indices : ndarray of int
            (..., indices, lanes).

        Returns
        -------
        ndarray of uint32
            (..., words, lanes); the index of place 0 is in a word's lowest bits.
        """
        *outer, count, lanes = indices.shape
        words = np.zeros((*outer, self.words(count), lanes), "uint32")
        for i in range(count):
            word, place = divmod(i, self.per_word)
            words[..., word, :] |= indices[..., i, :].astype("uint32") << place * self.bits
        return words

    def pick(self, table: Sequence[tirx.Expr], word: tirx.Expr, place: int) -> tirx.Expr:
        """What the indices at a place find, from 0 to `per_word` - 1, of a vector of words.

        Parameters
        ----------
        table : sequence of two Expr
            float32 vectors.
        word : Expr
            uint32 vector.
        """
        dtype = vectors.vector_type("float32", self.lanes)
        shift = vectors.constant(place * self.bits, "uint32", self.lanes)
        index = vectors.reinterpret(word >> shift if place else word, "int32", self.lanes)
        if self.lanes == 16:
            first, second = table
            name = "llvm.x86.avx512.vpermi2var.ps.512"
            return tirx.call_llvm_pure_intrin(dtype, name, first, index, second)
        low, high = (
            tirx.call_llvm_pure_intrin(dtype, "llvm.x86.avx2.permps", half, index) for half in table
        )
        # Blends look at the sign.
        sign = index << vectors.constant(_WORD_BITS - self.bits, "int32", self.lanes)
        return tirx.Select(sign < vectors.constant(0, "int32", self.lanes), high, low)


def table_lookup(target: CpuTarget) -> TableLookup | None:
    """The lookup of a target's vectors; None if they can't pick lanes by a vector of indices."""
    return TableLookup(target.lanes) if target.isa in ("avx512", "avx2") else None
