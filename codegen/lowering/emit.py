"""One nest as instructions: load what isn't in SRAM, compute, store."""

from __future__ import annotations

from collections.abc import Mapping

from tvm_ext.codegen.lowering import nest as kinds
from tvm_ext.codegen.lowering.footprint import INT32_BYTES, Residency, input_extent
from tvm_ext.codegen.lowering.nest import (
    PADDING_BLOB,
    Fold,
    Nest,
    Span,
    Tile,
    Tiling,
    tiles,
    window_span,
)
from tvm_ext.codegen.lowering.places import Addresses, Box, Buffers, Slots, dense_box, repeated_box
from tvm_ext.codegen.lowering.recipe import Recipe, Registers
from tvm_ext.codegen.lowering.stream import Copy, Stream
from tvm_ext.codegen.lowering.views import View


class NestEmitter:
    """Appends one nest to a stream.

    Parameters
    ----------
    nest, tiling, residency, buffers, addresses
        What to run, how, and where everything is.
    recipe : Recipe
        Its instruction.
    blobs : Mapping
        Addresses in system memory of the tiles' weights and parameters, by the indices of channels
        and depth.
    stream : Stream
    tag : int
        The layer's index.
    """

    def __init__(
        self, nest: Nest, tiling: Tiling, residency: Residency, buffers: Buffers,
        addresses: Addresses, recipe: Recipe, blobs: Mapping[tuple[int, int], int], stream: Stream,
        tag: int,
    ) -> None:  # fmt: skip
        self._nest, self._tiling, self._residency = nest, tiling, residency
        self._addresses, self._recipe, self._blobs = addresses, recipe, blobs
        self._stream, self._tag = stream, tag
        self._inputs = [Slots(slots) for slots in buffers.inputs]
        self._weights, self._outputs = Slots(buffers.weights), Slots(buffers.output)
        self._partial = buffers.partial[0] if buffers.partial else 0
        self._padded: set[int] = set()

    def emit(self) -> None:
        """Append all tiles."""
        result: Box | None = None
        for tile in tiles(self._nest, self._tiling):
            weights = self._load_weights(tile) if self._nest.has_parameters else 0
            sources = [self._load_input(index, tile) for index in range(len(self._nest.inputs))]
            if tile.is_first:
                result = self._result(tile)
            assert result is not None
            self._compute(tile, weights, sources, result)
            if tile.is_last and self._residency.is_stored:
                self._store(tile, result)

    def _load_weights(self, tile: Tile) -> int:
        key = (tile.channels.index, tile.depth.index)
        if (address := self._weights.find(key)) is not None:
            return address
        address, nest = self._weights.take(key), self._nest
        extra = nest.bias_bytes * tile.is_first + nest.scale_bytes * tile.is_last
        size = tile.channels.count * (nest.taps_bytes * tile.depth.count + extra)
        self._stream.read(Copy(self._blobs[key], address, (1, 1, size), (0, 0), (0, 0)), self._tag)
        return address

    def _load_input(self, index: int, tile: Tile) -> Box:
        view = self._nest.inputs[index]
        rows, _ = window_span(self._nest, 0, tile.rows)
        columns, _ = window_span(self._nest, 1, tile.columns)
        channels = tile.depth if self._nest.reduction else tile.channels
        if self._nest.fold:
            return self._load_folded(self._nest.fold, view, rows)
        if self._residency.inputs[index]:
            return self._resident(view, rows, columns, channels)
        box_at = dense_box(columns.count, channels.count * view.item_bytes)
        if view.repeats:
            rows = columns = Span(0, 1)
            box_at = repeated_box
        slots, key = self._inputs[index], (rows, columns, channels)
        address = slots.find(key)
        if address is None:
            address = slots.take(key)
            copy = self._copy(view, box_at(address), rows, columns, channels)
            self._stream.read(copy, self._tag)
        return box_at(address)

    def _load_folded(self, fold: Fold, view: View, rows: Span) -> Box:
        """Rows with their padding, whose pixels overlap; padding is loaded once a buffer."""
        slots, width = self._inputs[0], view.shape[1]
        pitch, item = fold.row_bytes(width), fold.channels
        address = slots.find(rows)
        if address is None:
            address = slots.take(rows)
            box = Box(address + fold.left * item, pitch, item)
            copy = self._copy(view, box, rows, Span(0, width), Span(0, item))
            self._stream.read(copy, self._tag)
            if address not in self._padded:
                self._padded.add(address)
                most = int(input_extent(self._nest, 0, self._tiling.rows))
                for pixels, start in ((fold.left, 0), (fold.right, fold.left + width)):
                    if pixels:
                        self._load_padding(address + start * item, (most, pixels * item), pitch)
        return Box(address, pitch, fold.stride * item)

    def _load_padding(self, address: int, size: tuple[int, int], pitch: int) -> None:
        copy = Copy(self._blobs[PADDING_BLOB], address, (1, *size), (0, 0), (0, pitch))
        self._stream.read(copy, self._tag)

    def _result(self, tile: Tile) -> Box:
        view = self._nest.output
        if self._residency.output:
            return self._resident(view, tile.rows, tile.columns, tile.channels)
        box_at = dense_box(tile.columns.count, tile.channels.count * view.item_bytes)
        return box_at(self._outputs.take(tile))

    def _store(self, tile: Tile, result: Box) -> None:
        view = self._nest.output
        if self._nest.operation == kinds.DEPTH_AS_CONV and self._nest.wide:
            copy = self._planar_copy(view, result, tile)
        else:
            copy = self._copy(view, result, tile.rows, tile.columns, tile.channels)
        self._stream.write(copy, self._tag)

    def _resident(self, view: View, rows: Span, columns: Span, channels: Span) -> Box:
        start = view.at(rows.start, columns.start, channels.start)
        address = self._addresses.sram[view.storage] + start
        return Box(address, view.row_pitch, view.pixel_pitch)

    def _copy(self, view: View, box: Box, rows: Span, columns: Span, channels: Span) -> Copy:
        start = view.at(rows.start, columns.start, channels.start)
        return Copy(
            self._addresses.memory[view.storage] + start,
            box.address,
            (rows.count, columns.count, channels.count * view.item_bytes),
            (view.row_pitch, view.pixel_pitch),
            (box.row_pitch, box.pixel_pitch),
        )

    def _planar_copy(self, view: View, box: Box, tile: Tile) -> Copy:
        """Sums that OP_CONV left channel by channel; rows and pixels are one dimension, so the
        tile has whole rows.
        """
        start = view.at(tile.rows.start, 0, tile.channels.start)
        pixels = tile.rows.count * tile.columns.count
        return Copy(
            self._addresses.memory[view.storage] + start,
            box.address,
            (tile.channels.count, pixels, INT32_BYTES),
            (INT32_BYTES, view.pixel_pitch),
            (pixels * INT32_BYTES, INT32_BYTES),
        )

    def _compute(self, tile: Tile, weights: int, sources: list[Box], result: Box) -> None:
        nest, recipe = self._nest, self._recipe
        registers: Registers = {
            **recipe.registers, "out_height": tile.rows.count, "out_channels": tile.channels.count,
        }  # fmt: skip
        if nest.operation == kinds.MATMUL:
            registers["input_row_pitch"] = sources[0].row_pitch
        else:
            registers["out_width"] = tile.columns.count
            if nest.operation != kinds.SHIFT:
                registers |= sources[0].registers("input")
        if nest.operation in (kinds.CONV, kinds.DEPTH, kinds.DEPTH_AS_CONV, kinds.POOL):
            registers |= self._window(tile)
        if nest.reduction:
            registers["in_channels"] = tile.depth.count
        fields = {**recipe.fields, "input": sources[0].address}
        if len(sources) == 2:
            fields["other"] = sources[1].address
            registers |= sources[1].registers("other")
        if nest.has_parameters:
            self._add_parameters(tile, weights, fields, registers)
        if tile.is_last and not nest.wide:
            fields["output"] = result.address
            registers["output_row_pitch"] = result.row_pitch
            if nest.operation != kinds.MATMUL:
                registers["output_pixel_pitch"] = result.pixel_pitch
        elif nest.wide and tile.is_last:
            fields["output"] = result.address
        else:
            fields |= {"output": self._partial, "wide": 1, "per_channel": 0}
        mnemonic = recipe.mnemonic
        if recipe.relu and tile.is_last:
            mnemonic = "OP_CONV_RELU"
            del fields["wide"]
        if nest.operation == kinds.DEPTH_AS_CONV:
            self._compute_by_channel(mnemonic, tile, fields, registers)
        else:
            self._stream.add(mnemonic, fields, registers, self._tag)

    def _window(self, tile: Tile) -> Registers:
        rows, top = window_span(self._nest, 0, tile.rows)
        columns, left = window_span(self._nest, 1, tile.columns)
        width = columns.count
        if self._nest.fold:
            width, left = tile.columns.count, 0
        return {"in_height": rows.count, "in_width": width, "pad_top": top, "pad_left": left}

    def _add_parameters(
        self, tile: Tile, blob: int, fields: dict[str, int], registers: Registers
    ) -> None:
        nest, address = self._nest, blob
        if nest.bias_bytes and tile.is_first:
            fields["bias"] = 1
            registers["bias_address"] = address
            address += nest.bias_bytes * tile.channels.count
        if nest.scale_bytes and tile.is_last:
            registers["scales_address"] = address
            address += nest.scale_bytes * tile.channels.count
        if nest.taps_bytes:
            fields["weights"] = address
        if not tile.is_first:
            fields["accumulate"] = 1
            registers["partial_address"] = self._partial

    def _compute_by_channel(
        self, mnemonic: str, tile: Tile, fields: dict[str, int], registers: Registers
    ) -> None:
        """Software depthwise: one OP_CONV with one filter for each channel."""
        nest = self._nest
        step = tile.rows.count * tile.columns.count * INT32_BYTES if nest.wide else 1
        for channel in range(tile.channels.count):
            mine = {
                **fields, "input": fields["input"] + channel,
                "weights": fields["weights"] + channel * nest.taps_bytes,
                "output": fields["output"] + channel * step,
            }  # fmt: skip
            changed: Registers = {**registers, "in_channels": 1, "out_channels": 1}
            for name in ("bias_address", "scales_address"):
                if name in registers:
                    changed[name] = int(registers[name]) + channel * INT32_BYTES
            self._stream.add(mnemonic, mine, changed, self._tag)
