"""A 1x1 convolution as a part of a larger kernel: some positions at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import tirx

from tvm_ext.schedules import cuts, emit
from tvm_ext.schedules.conv_stage import Source
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.spatial_pack_weights import DenseWeights, Place, group_blocks
from tvm_ext.schedules.tiles import Tile, efficiency
from tvm_ext.target import CpuTarget

# Stores a result, given its position, the vector of its panel, its lane and the value.
Store = Callable[[Any, Any, Any, tirx.Expr], None]


def product_seconds(w: ConvWorkload, tile: Tile, positions: int, target: CpuTarget) -> float:
    """Seconds of one core for one image of a 1x1 convolution, so many positions at a time."""
    blocks = group_blocks(w, target)
    padded = blocks * target.lanes / w.out_channels
    share = efficiency(tile, positions, blocks, target)
    return 2 * w.macs / w.batch * padded / (share * target.fma_peak)


class PointwiseTiles:
    """The weights of a 1x1 convolution, and the register tiles of positions that lie in a row.

    Constructing it declares the weights, as the next argument of the kernel; `pack_panels` packs
    them.
    """

    def __init__(
        self, w: ConvWorkload, tile: int, blocks: int, target: CpuTarget, name: str
    ) -> None:
        self._tile, self._width, self._lanes = tile, blocks, target.lanes
        self.weights = DenseWeights(w, {"blocks": blocks, "pieces": 1}, target)
        self.weights.declare(name)
        self._blocks = group_blocks(w, target)

    def first_block(self, panel: Any) -> Any:
        """The first of a panel's vectors of output channels."""
        return cuts.panel_start(panel, self._width, self._blocks)

    def tiles(
        self, source: Source, n: Any, panel: Any, start: Any, positions: int,
        row: Any, rows: int, store: Store,
    ) -> None:  # fmt: skip
        """Multiply `positions` of a source from `start` on, the `row`-th of a panel's `rows`."""
        cut = cuts.split_extent(positions, self._tile)
        tiles, done, offset = sum(count for count, _ in cut), 0, 0
        for count, size in cut:
            with emit.loop(count) as t:
                column, turn = start + offset + t * size, row * tiles + done + t
                acc = emit.RegisterTile(size, self._width, self._lanes)
                acc.zero()
                at = Place(source, n, 0, panel, 0, column, (0,), turn, rows * tiles)
                self.weights.multiply(acc, at, self._lanes, lambda part, parts: None)
                acc.each(
                    lambda x, c, lane, first=offset + t * size, acc=acc: store(
                        first + x, c, lane, acc.get(x, c, lane)
                    )
                )
            offset += count * size
            done += count
