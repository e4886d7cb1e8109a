"""The last step of Winograd convolution: tiles transformed back, finished, pooled where asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import emit
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.emit_epilogue import apply_epilogue
from tvm_ext.schedules.pool_global import combine
from tvm_ext.schedules.pool_line import pool_axes
from tvm_ext.schedules.pool_stage import PooledRows, first_row, rows_needed, rows_pooled, when
from tvm_ext.schedules.winograd_matrices import TRANSFORMS, emit_linear_map


@dataclass(frozen=True)
class RowCut:
    """How tasks share the rows of the output: `tiles` rows of tiles each.

    Attributes
    ----------
    height : int
        Rows of tiles, or with a pool stage rows of its output.
    share : int
        Of them, those of one task.
    """

    m: int
    workload: ConvWorkload
    tiles: int

    @property
    def height(self) -> int:
        w = self.workload
        return w.out_spatial[0] if w.pool else -(-w.conv_spatial[0] // self.m)

    @property
    def share(self) -> int:
        return rows_pooled(self.workload, self.tiles * self.m) if self.workload.pool else self.tiles

    def tiles_of(self, count: int) -> int:
        """Rows of tiles for `count` rows."""
        return -(-rows_needed(self.workload, count) // self.m) if self.workload.pool else count

    @property
    def all_tiles(self) -> int:
        """Rows of tiles that all tasks compute together."""
        full, rest = divmod(self.height, self.share)
        return full * self.tiles_of(self.share) + (self.tiles_of(rest) if rest else 0)

    def start(self, first: Any, count: int) -> Any:
        """First row of the convolution's output that a task computes."""
        return first_row(self.workload, first, count) if self.workload.pool else first * self.m


def fewest_tiles(m: int, w: ConvWorkload) -> int:
    """The fewest rows of tiles in which a task can do anything."""
    return -(-rows_needed(w, 1) // m) if w.pool else 1


class TileOutput:
    """Transforms the tiles of one task back and stores what becomes of them.

    `first` and `count` are the task's rows, as `RowCut` counts them; `width` is its number of
    vectors of output channels at a time. With `overhang` the task may have rows of tiles below the
    output.
    """

    def __init__(
        self, cut: RowCut, operands: Sequence[Any], out: Any, lanes: int, width: int,
        n: Any, first: Any, start: Any, count: int, overhang: bool = False,
    ) -> None:  # fmt: skip
        w, m = cut.workload, cut.m
        self._w, self._m, self._operands, self._out, self._v = w, m, operands, out, lanes
        self._n, self._first, self._start, self._count = n, first, start, count
        self._width = width
        # A tile between its two one-dimensional transforms: more vectors than there are registers.
        self._half = emit.workspace(((m + 2) * (m + 2) * lanes,))
        self._result = emit.workspace((m * m * lanes,))
        self._inside = _pools_tiles(m, w)
        self._kept = None
        rows = cut.tiles_of(count) * m
        columns = -(-w.conv_spatial[1] // m)
        # Whether tiles reach beyond the rows and the columns that they make.
        self._tall, self._wide = w.conv_spatial[0] % m > 0, w.conv_spatial[1] % m > 0
        self._tall |= overhang
        if w.pool and self._inside:
            self._tall = rows // w.pool.strides[0] > count
            self._wide = columns * m // w.pool.strides[1] > w.pool.out_spatial[1]
        elif w.pool:
            self._tall = rows > rows_needed(w, count)
            self._kept = PooledRows(w, lanes, lanes, width, start, rows)

    def tile(self, product: Any, source: Any, k: Any, block: Any, row: Any, column: Any) -> None:
        """Finish the tile at `row` and `column` of the task; its products are at `source`."""
        m, v, a = self._m, self._v, self._m + 2
        transform = TRANSFORMS[m].output
        half, result = self._half, self._result
        with T.unroll(0, a) as j:
            emit_linear_map(
                transform,
                v,
                lambda i, lane: product[i * a + j, source + lane],
                lambda i, lane, value: T.buffer_store(half, value, [(i * a + j) * v + lane]),
            )
        with T.unroll(0, m) as i:
            emit_linear_map(
                transform,
                v,
                lambda j, lane: half[(i * a + j) * v + lane],
                lambda j, lane, value: T.buffer_store(result, value, [(i * m + j) * v + lane]),
            )
        if self._inside:
            self._pool_tile(block, row, column)
            return
        with T.unroll(0, m) as i, T.unroll(0, m) as j:
            y, x = self._start + row * m + i, column * m + j
            height, width = self._w.conv_spatial
            ragged = [y < height] if self._tall else []
            ragged += [x < width] if self._wide else []
            with when(ragged), T.vectorized(0, v) as lane:
                value = self._finished(block, y, x, (i * m + j) * v + lane, lane)
                if self._kept is None:
                    T.buffer_store(self._out, value, [self._n, block, y, x, lane])
                else:
                    self._kept.put(k, y, x * v + lane, value)

    def _finished(self, block: Any, y: Any, x: Any, at: Any, lane: Any) -> tirx.Expr:
        index = [self._n, block, y, x, lane]
        return apply_epilogue(self._w.epilogue, self._operands, self._v, index, [self._result[at]])

    def _pool_tile(self, block: Any, row: Any, column: Any) -> None:
        """Pool windows that are inside the tile."""
        pool, m, v = self._w.pooling, self._m, self._v
        assert pool is not None
        across, down = pool.strides[1], pool.strides[0]
        with T.unroll(0, m // down) as i, T.unroll(0, m // across) as j:
            y, x = self._first + row * (m // down) + i, column * (m // across) + j
            height, width = pool.out_shape[2:]
            ragged = [y < height] if self._tall else []
            ragged += [x < width] if self._wide else []
            with when(ragged):
                acc = emit.RegisterTile(1, 1, v)
                for t, (a, b) in enumerate(product(*map(range, pool.kernel))):
                    at = ((i * down + a) * m + j * across + b) * v
                    with T.vectorized(0, v) as lane:
                        value = self._finished(block, y * down + a, x * across + b, at + lane, lane)
                        T.buffer_store(self._result, value, [at + lane])
                    acc.fill(
                        lambda r, c, lane, t=t, at=at: (
                            combine(pool, acc.get(r, c, lane), self._result[at + lane])
                            if t
                            else self._result[at + lane]
                        )
                    )
                scale = tirx.const(1.0 / (pool.kernel[0] * pool.kernel[1]), "float32")
                acc.each(
                    lambda r, c, lane: T.buffer_store(
                        self._out,
                        acc.get(r, c, lane) * scale if pool.kind == "avg" else acc.get(r, c, lane),
                        [self._n, block, y, x, lane],
                    )
                )

    def pool(self, block0: Any) -> None:
        """Pool the rows that the task's tiles of these channels have left, where they have."""
        kept = self._kept
        if kept is None:
            return
        with emit.nest((self._width, self._count)) as (k, i):
            row = self._first + i
            kept.pool(
                k,
                row,
                lambda x, lane, value: T.buffer_store(
                    self._out, value, [self._n, block0 + k, row, x, lane]
                ),
            )


def _pools_tiles(m: int, w: ConvWorkload) -> bool:
    """Whether every window of the pool stage is inside one tile, and inside the output."""
    return w.pooling is not None and all(
        axis.kernel <= axis.stride and m % axis.stride == 0 and not axis.cut
        for axis in pool_axes(w.pooling)
    )
