"""Hand-made schedules of small products, from scalar to tiled, and a model of their time."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import tvm
from tvm.s_tir import Schedule

from tests.transfer.programs import matmul_layer, program
from tvm_ext.schedules.tuned import trace_text
from tvm_ext.transfer.tensor_program import LayerProgram
from tvm_ext.transfer.tune_candidates import Candidate
from tvm_ext.transfer.tune_store import workload_key
from tvm_ext.transfer.tuned_record import TunedRecord


@dataclass(frozen=True)
class Tiles:
    """Rows and columns that stay in registers; columns in a vector; whether rows are unrolled."""

    rows: int
    columns: int
    vector: bool
    unrolled: bool

    def seconds(self, made: LayerProgram) -> float:
        """A made-up time: loads shrink with the tile, vectors divide by their width."""
        flops = made.workload.flops
        loads = flops * (1 / self.rows + 1 / self.columns)
        lanes = min(self.columns, 16) if self.vector else 1
        overhead = 1.0 if self.unrolled else 1.6
        return 1e-9 * (flops + 2 * loads) / lanes * overhead


ALL = [Tiles(*t) for t in product((1, 2, 4, 8), (4, 8, 16, 32), (False, True), (False, True))]


def matmul(size: int) -> LayerProgram:
    """A square product."""
    return program(matmul_layer(size, size, size))


def scheduled(made: LayerProgram, tiles: Tiles) -> Schedule:
    """Tiled, the reduction outside the tile."""
    schedule = Schedule(tvm.IRModule({"main": made.workload.function}))
    (block,) = schedule.get_child_blocks(schedule.get_sblock("root"))
    i, j, k = schedule.get_loops(block)
    i0, i1 = schedule.split(i, [None, tiles.rows])
    j0, j1 = schedule.split(j, [None, tiles.columns])
    schedule.reorder(i0, j0, k, i1, j1)
    if tiles.vector:
        schedule.vectorize(j1)
    if tiles.unrolled:
        schedule.unroll(i1)
    schedule.decompose_reduction(block, k)
    return schedule


def scalar(made: LayerProgram) -> Schedule:
    """As it is lowered."""
    return Schedule(tvm.IRModule({"main": made.workload.function}))


def records(size: int) -> list[TunedRecord]:
    """All schedules of a product, with their made-up times."""
    made = matmul(size)
    function = made.workload.function
    key = workload_key(function)
    return [
        TunedRecord(function, key, trace_text(scheduled(made, t).trace), t.seconds(made), "here")
        for t in ALL
    ]


def candidate(schedule: Schedule) -> Candidate:
    """A schedule as a candidate."""
    return Candidate(schedule.mod, trace_text(schedule.trace), 1.0)
