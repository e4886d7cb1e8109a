"""What a product on AMX costs, and how its registers are best cut."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from tvm_ext.schedules import amx, costs
from tvm_ext.schedules.amx_product import TileCut
from tvm_ext.target import CpuTarget

# What loading a row of a tile from the L2 cache adds to the products, which hide the rest.
_LINE_CYCLES = 0.3
# Cycles that it takes to split a pair of vectors into words, and to finish a vector of sums.
_SPLIT_CYCLES = 8.0
_FINISH_CYCLES = 5.0


@dataclass(frozen=True)
class Passes:
    """A layer whose tasks split bands of its input, over each of which all panels pass.

    Attributes
    ----------
    cut : TileCut
    bands : int
        Of the whole batch.
    positions, staged : int
        Of a band: those that are computed, and those whose input is split.
    groups, taps : int
        Steps of a panel: groups of `amx.DEPTH` channels times taps of a window.
    panels, pieces : int
        All panels, and the parts of them that threads share.
    nbytes : int
        What the layer must move at least.
    """

    cut: TileCut
    bands: int
    positions: int
    staged: int
    groups: int
    taps: int
    panels: int
    pieces: int
    nbytes: int

    def seconds(self, target: CpuTarget) -> float:
        """Estimated time on all cores."""
        cut, steps = self.cut, self.groups * self.taps
        cycle = 4 * target.lanes / target.fma_peak  # two FMA instructions of 2 x lanes operations
        split = self.groups * self.staged * _SPLIT_CYCLES
        product = self.panels * steps * panel_cycles(cut, self.positions)
        finished = self.panels * cut.units(self.positions) * cut.unit * cut.across
        words = 4 * cut.terms * amx.LANES * self.groups * self.staged
        spilled = costs.overflow(words, self.panels, target)
        weights = 4 * self.panels * steps * cut.step_words
        band = (split + product + finished * _FINISH_CYCLES) * cycle + spilled
        work = band * self.bands + costs.reread(weights, self.bands - 1, target)
        if self.pieces == 1:
            return costs.shared_out(work, self.bands, self.nbytes, target)
        work += 2 * costs.FORK_SECONDS * self.bands * target.cores
        return costs.shared_out(work, self.pieces, self.nbytes, target)


def panel_cycles(cut: TileCut, positions: int) -> float:
    """Cycles of one step of a panel over so many positions.

    An instruction takes one for each row of its sums.
    """
    products = cut.products * cut.down * cut.across * cut.rows
    lines = cut.terms * (cut.down * cut.rows + cut.across * amx.ROWS)
    return cut.units(positions) * (products + _LINE_CYCLES * lines)


@functools.lru_cache(maxsize=4096)
def best_cut(positions: int, blocks: int, products: int) -> TileCut:
    """The cut that takes the fewest cycles for so many positions and vectors of outputs."""
    options = []
    for across in (1, 2, 3):
        for down in (1, 2):
            for rows in range(1, amx.ROWS + 1):
                cut = TileCut(rows, down, across, products)
                if not cut.problem(positions, blocks):
                    options.append((panel_cycles(cut, positions) * -(-blocks // across), cut))
    return min(options, key=lambda option: option[0])[1]
