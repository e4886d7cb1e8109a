"""The loops of a convolution on AMX, with its epilogue and its pool stage."""

from __future__ import annotations

from typing import Any

from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import amx, cuts, emit
from tvm_ext.schedules.amx_conv_stage import SplitInput, channel_groups
from tvm_ext.schedules.amx_planes import Planes
from tvm_ext.schedules.amx_product import Sums, TileCut, emit_tasks, multiply_panel
from tvm_ext.schedules.base import Params
from tvm_ext.schedules.conv_geometry import lifted
from tvm_ext.schedules.conv_prologue import declare_constants
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.emit import Index
from tvm_ext.schedules.emit_epilogue import apply_epilogue, declare_operands, lifted_epilogue
from tvm_ext.schedules.layout import stored_shape
from tvm_ext.schedules.pool_stage import PooledRows, first_row, rows_needed, rows_pooled, when
from tvm_ext.target import CpuTarget

_V = amx.LANES


def band_extent(w: ConvWorkload) -> int:
    """Rows of the convolution's output, or with a pool stage of that one's."""
    return lifted(w).out_spatial[0]


def band_rows(w: ConvWorkload, rows: int) -> tuple[int, int]:
    """Of a band with `rows` rows of the convolution: the rows that it stores, and computes."""
    share = rows_pooled(w, rows)
    return share, rows_needed(w, share)


def emit_amx_conv(w: ConvWorkload, params: Params, target: CpuTarget) -> None:
    """Declare the arguments and emit the loops."""
    flat = lifted(w)
    cut = TileCut.of(params)
    share, rows = band_rows(flat, params["rows"])
    planes = Planes.of(flat, rows)
    groups, extent = channel_groups(w), band_extent(w)
    steps = groups * flat.kernel[0] * flat.kernel[1]
    blocks = -(-w.out_channels // _V)
    panels = -(-blocks // cut.across)

    data = emit.argument("data", stored_shape(w.in_shape, _V))
    weight = emit.argument("weight", (panels * steps * cut.step_words,), "int32")
    constants = declare_constants(w, target)
    operands = declare_operands(w.epilogue, _V)
    out = emit.argument("out", stored_shape(w.out_shape, _V))
    data = emit.view(data, stored_shape(flat.in_shape, _V))
    out = emit.view(out, stored_shape(flat.out_shape, _V))
    epilogue, operands = lifted_epilogue(w.epilogue, operands, flat.conv_spatial, _V)
    source = SplitInput(planes, cut.terms, data, constants)

    def start(first: Index) -> Index:
        """First row of the convolution that a band computes."""
        return first_row(flat, first, share) if w.pool else first

    def split(n: Index, band: Index, group: Index, staged: Any) -> None:
        first = cuts.panel_start(band, share, extent)
        source.split(n, start(first), group, staged)

    def multiply(n: Index, band: Index, panel: Index, staged: Any) -> None:
        first = cuts.panel_start(band, share, extent)
        row0, block0 = start(first), cuts.panel_start(panel, cut.across, blocks)
        kept = PooledRows(flat, _V, _V, cut.across, row0, rows) if w.pool else None

        def finish(position: Index, sums: Sums) -> None:
            y, x = row0 + position // planes.pitch, position % planes.pitch
            with when([x < flat.conv_spatial[1]] if planes.pitch > flat.conv_spatial[1] else []):
                for c in range(cut.across):
                    with T.vectorized(0, _V) as lane:
                        index = [n, block0 + c, y, x, lane]
                        value = apply_epilogue(epilogue, operands, _V, index, [sums(c, lane)])
                        if kept is None:
                            T.buffer_store(out, value, index)
                        else:
                            kept.put(c, y, x * _V + lane, value)

        multiply_panel(
            cut, planes.positions, steps,
            lambda step, term, position: source.place(staged, step, term, position),
            weight, panel, finish,
        )  # fmt: skip
        if kept is not None:
            with emit.nest((cut.across, share)) as (c, i):
                row = first + i
                kept.pool(
                    c,
                    row,
                    lambda x, lane, value: T.buffer_store(
                        out, value, [n, block0 + c, row, x, lane]
                    ),
                )

    emit_tasks(
        cut, w.batch, -(-extent // share), groups, panels, min(params["pieces"], panels),
        source.memory, split, multiply,
    )  # fmt: skip
