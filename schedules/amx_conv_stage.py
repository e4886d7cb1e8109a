"""The input of a convolution on AMX: words of bfloat16 terms, padded, in the planes of its taps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import amx, emit
from tvm_ext.schedules.amx_planes import Planes
from tvm_ext.schedules.conv_prologue import processed
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.emit import Index
from tvm_ext.schedules.row_copy import row_bounds
from tvm_ext.schedules.split_words import store_words


def channel_groups(w: ConvWorkload) -> int:
    """Words of channels: of two vectors each."""
    return -(-w.in_channels // amx.DEPTH)


class SplitInput:
    """Copies of what bands of rows read.

    Parameters
    ----------
    planes : Planes
        Of a band; its workload has two spatial dimensions.
    terms : int
        Of each value.
    data, constants
        The input, in blocks of `amx.LANES` channels, and the prologue's operands.
    """

    def __init__(self, planes: Planes, terms: int, data: Any, constants: Sequence[Any]) -> None:
        self._planes, self._terms = planes, terms
        self._data, self._constants = data, constants

    def memory(self) -> Any:
        """For the words of one band."""
        groups = channel_groups(self._planes.w)
        return emit.workspace((self._terms, groups, self._planes.all_positions, amx.LANES), "int32")

    def place(self, staged: Any, step: Index, term: int, position: Index) -> tuple[Any, list[Any]]:
        """Where the words start that a step reads for some positions."""
        kernel = self._planes.w.kernel
        taps = kernel[0] * kernel[1]
        group, tap = step // taps, step % taps
        offset = self._planes.tap(tap // kernel[1], tap % kernel[1])
        return staged, [term, group, position + offset, 0]

    def split(self, n: Index, first: Index, group: Index, staged: Any) -> None:
        """Copy a group of channels for the rows of the output from `first` on."""
        planes, w = self._planes, self._planes.w
        for p in range(planes.phases[0]):
            with emit.loop(planes.height) as i:
                y = (first + i) * w.strides[0] + p - w.pad_before[0]
                reach = (w.conv_spatial[0] + planes.shift[0]) * w.strides[0]
                inside = row_bounds([y], w.spatial, w.pad_before, (reach,))
                for q in range(planes.phases[1]):
                    row = (p * planes.phases[1] + q) * planes.size + i * planes.pitch
                    if not inside:
                        self._row(n, group, y, q, row, staged)
                        continue
                    with T.If(tirx.all(*inside)):
                        with T.Then():
                            self._row(n, group, y, q, row, staged)
                        with T.Else():
                            self._blank(group, row, planes.pitch, staged)
        end = planes.height * planes.pitch
        for plane in range(planes.phases[0] * planes.phases[1]):
            self._blank(group, plane * planes.size + end, planes.size - end, staged)

    def _row(self, n: Index, group: Index, y: Index, phase: int, row: Index, staged: Any) -> None:
        """Copy row y of the input, those columns that are of a phase, to position `row`."""
        planes, w = self._planes, self._planes.w
        start, stop = planes.columns(phase)
        self._blank(group, row, start, staged)
        with emit.loop(stop - start) as j:
            x = (start + j) * w.strides[1] + phase - w.pad_before[1]
            store_words(
                lambda lane: self._value(n, 2 * group, y, x, lane),
                lambda lane: self._value(n, 2 * group + 1, y, x, lane),
                self._terms,
                lambda term, lane, word: T.buffer_store(
                    staged, word, [term, group, row + start + j, lane]
                ),
            )
        self._blank(group, row + stop, planes.pitch - stop, staged)

    def _value(self, n: Index, block: Index, y: Index, x: Index, lane: Index) -> tirx.Expr:
        """An element of the input after the prologue; zero past the last channel."""
        w = self._planes.w
        blocks = -(-w.in_channels // amx.LANES)
        channel = block * amx.LANES + lane
        inside = tirx.min(block, blocks - 1) if blocks % 2 else block
        value = self._data[n, inside, y, x, lane]
        value = processed(w, self._constants, inside * amx.LANES + lane, value)
        if w.in_channels % amx.DEPTH == 0:
            return value
        return tirx.Select(channel < w.in_channels, value, tirx.const(0.0, "float32"))

    def _blank(self, group: Index, start: Index, count: int, staged: Any) -> None:
        """Fill positions with zeros."""
        if count <= 0:
            return
        with (
            emit.nest((self._terms, count)) as (term, j),
            T.vectorized(0, amx.LANES) as lane,
        ):
            T.buffer_store(staged, tirx.const(0, "int32"), [term, group, start + j, lane])
