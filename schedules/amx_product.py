"""A product on AMX: panels of weights pass over a task's positions.

Each of the two sides is a sum of bfloat16 terms (`split_words`), so that a step has several
products of tiles. The sums stay in tile registers over all steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm import tirx

from tvm_ext.schedules import amx, cuts, emit
from tvm_ext.schedules.base import Params
from tvm_ext.schedules.emit import Index

# Terms of the data and of the weights that are multiplied, in an order that loads few tiles twice.
PRODUCTS = {
    3: ((0, 1), (0, 0), (1, 0)),
    4: ((0, 1), (0, 0), (1, 0), (1, 1)),
    6: ((0, 2), (0, 1), (1, 1), (1, 0), (0, 0), (2, 0)),
}
# What precision "high" takes if nobody says otherwise.
DEFAULT_PRODUCTS = 3
# By the number of products: the bounds of `split_words`, 2^-15, 2^-16 and 2^-23, for sums whose
# products are, in magnitude, up to 32 times as large together as the largest output; and float32's.
TOLERANCES = {3: 1e-3, 4: 5e-4, 6: 1e-4}
# Of a step, a term and a position or a tile's number: where a tile starts.
Place = Callable[[Index, int, Index], tuple[Any, list[Index]]]
Sums = Callable[[int, Index], tirx.Expr]


@dataclass(frozen=True)
class TileCut:
    """Tiles in registers: `down` of `rows` positions times `across` of 16 outputs.

    `products` of the terms are summed up in each.
    """

    rows: int
    down: int
    across: int
    products: int

    @staticmethod
    def of(params: Params) -> TileCut:
        """What the parameters of a plan say."""
        return TileCut(params["tile"], params["down"], params["across"], params["products"])

    @property
    def params(self) -> dict[str, int]:
        """The parameters of a plan."""
        return {
            "tile": self.rows, "down": self.down, "across": self.across,
            "products": self.products,
        }  # fmt: skip

    @property
    def unit(self) -> int:
        """Positions in registers."""
        return self.rows * self.down

    @property
    def span(self) -> int:
        """Outputs in registers: a panel."""
        return self.across * amx.LANES

    @property
    def legal(self) -> bool:
        """Whether the sums and one tile row and column of factors fit."""
        return self.down * self.across + self.down + self.across <= amx.TILES

    @property
    def registers(self) -> list[int]:
        """Rows of each register: sums, data, weights."""
        data = [self.rows] * (self.down * self.across + self.down)
        return data + [amx.ROWS] * self.across

    @property
    def terms(self) -> int:
        """Terms of each side."""
        return 1 + max(max(pair) for pair in PRODUCTS[self.products])

    @property
    def step_words(self) -> int:
        """Words of weights of a step of a panel."""
        return self.terms * self.span * amx.LANES

    def units(self, positions: int) -> int:
        """Units that cover so many positions; the last one overlaps its neighbour."""
        return -(-positions // self.unit)

    def problem(self, positions: int, blocks: int) -> str:
        """Why it can't cut so many positions and vectors of outputs; or an empty string."""
        if not self.legal:
            return f"{self.down} x {self.across} tiles of sums don't fit {amx.TILES} registers"
        if self.unit > positions:
            return f"{self.down} tiles of {self.rows} are more than {positions} positions"
        if self.across > blocks:
            return f"{self.across} tiles across are more than {blocks} vectors of outputs"
        return ""


def cut_space(blocks: int) -> dict[str, tuple[int, ...]]:
    """The values of `TileCut.params` for so many vectors of outputs."""
    return {
        "tile": tuple(range(1, amx.ROWS + 1)),
        "down": (1, 2),
        "across": tuple(range(1, min(3, blocks) + 1)),
        "products": tuple(PRODUCTS),
    }


def multiply_panel(
    cut: TileCut,
    positions: int,
    steps: int,
    data: Place,
    weight: Any,
    panel: Index,
    finish: Callable[[Index, Sums], None],
) -> None:
    """All sums of a panel, inside `amx.configured(cut.registers)`.

    Parameters
    ----------
    data
        Where the tile of a step and a term starts that has a position first.
    weight, panel
        The words of all panels, as `split_words.pack_panels` orders them, and which it is.
    finish
        Takes a position, and the sums there by block of the panel and lane.
    """
    panel_words = steps * cut.step_words

    def weights(step: Index, term: int, c: Index) -> tuple[Any, list[Index]]:
        tile = (term * cut.across + c) * amx.ROWS * amx.LANES
        return weight, [panel * panel_words + step * cut.step_words + tile]

    sums = [range(i * cut.across, (i + 1) * cut.across) for i in range(cut.down)]
    results = emit.workspace((cut.unit, cut.across, amx.LANES))
    units = cut.units(positions)
    with emit.loop(units) as u:
        start = cuts.panel_start(u, cut.unit, positions)
        for tile in (tile for row in sums for tile in row):
            amx.zero(tile)
        with emit.loop(steps) as step:
            # The units take turns to ask for the next panel.
            emit.prefetch_ahead(
                weight, (panel + 1) * panel_words, panel_words, u * steps + step, units * steps
            )
            _multiply_step(cut, sums, step, start, data, weights)
        for i, row in enumerate(sums):
            for c, tile in enumerate(row):
                amx.store(tile, results, [i * cut.rows, c, 0], cut.across * amx.ROW_BYTES)
        with emit.loop(cut.unit) as r:
            finish(start + r, lambda c, lane: results[r, c, lane])


def _multiply_step(
    cut: TileCut, sums: list[range], step: Index, start: Index, data: Place, weights: Place
) -> None:
    """Every product of terms; a tile that the next one needs, too, is loaded once."""
    first = cut.down * cut.across
    left = range(first, first + cut.down)
    right = range(first + cut.down, first + cut.down + cut.across)
    held: tuple[int | None, int | None] = (None, None)
    for term, weight in PRODUCTS[cut.products]:
        if term != held[0]:
            for i, tile in enumerate(left):
                amx.load(tile, *data(step, term, start + i * cut.rows))
        if weight != held[1]:
            for c, tile in enumerate(right):
                amx.load(tile, *weights(step, weight, c))
        held = term, weight
        for i, row in enumerate(sums):
            for c, tile in enumerate(row):
                amx.multiply_add(tile, left[i], right[c])


def emit_tasks(
    cut: TileCut,
    batch: int,
    bands: int,
    groups: int,
    panels: int,
    pieces: int,
    staging: Callable[[], Any],
    split: Callable[[Index, Index, Index, Any], None],
    multiply: Callable[[Index, Index, Index, Any], None],
) -> None:
    """The tasks of a layer: each splits the data of a band, over which all panels pass.

    Parameters
    ----------
    pieces
        With more than one all threads split each band together, and share out its panels in so
        many parts: where bands are too few for the threads.
    staging
        Makes the memory for the words of a band.
    split
        Takes image, band, a group of `amx.DEPTH` channels, and that memory.
    multiply
        Takes image, band, panel and that memory.
    """
    amx.request_permission()
    if pieces == 1:
        with emit.parallel_tasks(batch, bands) as (n, band):
            staged = staging()
            with emit.loop(groups) as group:
                split(n, band, group, staged)
            with amx.configured(cut.registers), emit.loop(panels) as panel:
                multiply(n, band, panel, staged)
        return
    staged = staging()
    share = -(-panels // pieces)
    with emit.nest((batch, bands)) as (n, band):
        with emit.parallel_tasks(groups) as (group,):
            split(n, band, group, staged)
        with (
            emit.parallel_tasks(-(-panels // share)) as (piece,),
            amx.configured(cut.registers),
            emit.loop(share) as p,
        ):
            multiply(n, band, cuts.panel_start(piece, share, panels) + p, staged)
