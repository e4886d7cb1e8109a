"""AMX: the matrix unit of x86-64 server CPUs, as building blocks of kernels.

Eight registers hold tiles of up to 16 rows of 64 bytes. One instruction adds the product of a tile
of 16 x 32 bfloat16 values and one of 32 x 16 to a tile of 16 x 16 float32 values: 16 times the
multiply-adds that the vector units do in the same cycles. Subnormal factors count as zero, and
subnormal sums become zero. (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1,
chapter 18.)
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.dtypes import itemsize
from tvm_ext.host_amx import REQUEST, SYSCALL, TILE_DATA
from tvm_ext.schedules import emit
from tvm_ext.schedules.base import YES, Support, refuse
from tvm_ext.schedules.emit import Index
from tvm_ext.target import CpuTarget

# LLVM's names of what kernels need.
FEATURES = ("amx-bf16", "amx-tile")
# Rows of a tile, bytes of a row, and tiles.
ROWS = 16
ROW_BYTES = 64
TILES = 8
# float32 sums, or pairs of bfloat16 factors, in a row.
LANES = ROW_BYTES // 4
# Factors in a row: what one instruction sums up.
DEPTH = 2 * LANES


def supports_amx(target: CpuTarget) -> Support:
    """Whether kernels for a target may use the unit."""
    if target.precision != "high":
        return refuse(f"precision {target.precision}; only high")
    if not target.amx or target.lanes != LANES:
        return refuse("the target has no AMX for bfloat16, or no AVX-512 beside it")
    return YES


def request_permission() -> None:
    """Ask the operating system for the unit, for all threads of the process; again does no harm.

    The kernel fails with a RuntimeError where that is refused.
    """
    numbers = (tirx.const(x, "int64") for x in (SYSCALL, REQUEST, TILE_DATA))
    refused = tirx.call_extern("int64", "syscall", *numbers)
    message = "the operating system refuses this process AMX"
    with T.Assert(refused == tirx.const(0, "int64"), message):
        pass


@contextlib.contextmanager
def configured(rows: Sequence[int]) -> Iterator[None]:
    """Registers 0, 1, ... hold tiles of so many rows of 64 bytes, on this thread, in this scope."""
    config = T.alloc_buffer((64,), "uint8", scope="global")
    # Byte 0 is the palette; 16 bits a tile from byte 16 on are its row's bytes; bytes from 48 on
    # are its rows.
    values = [1] + [0] * 63
    for tile, count in enumerate(rows):
        values[16 + 2 * tile] = ROW_BYTES
        values[48 + tile] = count
    for i, value in enumerate(values):
        T.buffer_store(config, tirx.const(value, "uint8"), [i])
    _instruction("ldtilecfg", _pointer(config, [0]))
    yield
    _instruction("tilerelease")


def zero(tile: int) -> None:
    """Fill a tile with zeros."""
    _instruction("tilezero", _tile(tile))


def load(tile: int, buffer: Any, index: Sequence[Index], stride: int = ROW_BYTES) -> None:
    """Fill a tile with rows of memory that start `stride` bytes apart."""
    _instruction("tileloadd64", _tile(tile), _pointer(buffer, index), _stride(stride))


def store(tile: int, buffer: Any, index: Sequence[Index], stride: int = ROW_BYTES) -> None:
    """Write a tile's rows to memory, `stride` bytes apart."""
    _instruction("tilestored64", _tile(tile), _pointer(buffer, index), _stride(stride))


def multiply_add(sums: int, left: int, right: int) -> None:
    """``sums += left @ right``, of tiles.

    A word of `left` holds two factors that are neighbours in its row; a word of `right` two that
    are neighbours in its column.
    """
    _instruction("tdpbf16ps", _tile(sums), _tile(left), _tile(right))


def _instruction(name: str, *arguments: Any) -> None:
    T.evaluate(tirx.call_llvm_intrin("void", f"llvm.x86.{name}", *arguments))


def _tile(number: int) -> tirx.Expr:
    return tirx.const(number, "int8")


def _stride(nbytes: int) -> tirx.Expr:
    return tirx.const(nbytes, "int64")


def _pointer(buffer: Any, index: Sequence[Index]) -> tirx.Expr:
    """Where an element is.

    To TVM this is a use of the whole buffer. It would shrink one to the elements that it sees used,
    and of `address_of` sees one.
    """
    element = emit.flat_index(index, [int(extent) for extent in buffer.shape])
    nbytes = tirx.Cast("int64", tirx.const(0, "int32") + element) * itemsize(str(buffer.dtype))
    return tirx.handle_add_byte_offset(tirx.buffer_data(buffer), nbytes)
