"""The instructions of traces for CPUs, by the primitives that carry them out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any

from tvm.s_tir import Schedule

Inputs = Sequence[Any]
Apply = Callable[[Schedule, Inputs, Inputs, Any], Any]


def _sample_categorical(s: Schedule, i: Inputs, a: Inputs, decision: Any) -> Any:
    candidates, odds = ([getattr(x, "value", x) for x in values] for values in a)
    return s.sample_categorical(candidates, odds, decision)


def _sample_perfect_tile(s: Schedule, i: Inputs, a: Inputs, decision: Any) -> Any:
    return s.sample_perfect_tile(i[0], int(a[0]), int(a[1]), [int(x) for x in decision])


KINDS: MappingProxyType[str, Apply] = MappingProxyType(
    {
        "AddUnitLoop": lambda s, i, a, d: s.add_unit_loop(i[0]),
        "Annotate": lambda s, i, a, d: s.annotate(i[0], str(a[0]), i[1]),
        "CacheRead": lambda s, i, a, d: s.cache_read(i[0], int(a[0]), str(a[1]), list(i[1])),
        "CacheWrite": lambda s, i, a, d: s.cache_write(i[0], int(a[0]), str(a[1]), list(i[1])),
        "ComputeAt": lambda s, i, a, d: s.compute_at(i[0], i[1], bool(a[0]), int(a[1])),
        "ComputeInline": lambda s, i, a, d: s.compute_inline(i[0]),
        "DecomposeReduction": lambda s, i, a, d: s.decompose_reduction(i[0], i[1]),
        "Fuse": lambda s, i, a, d: s.fuse(*i, preserve_unit_iters=bool(a[0])),
        "GetChildBlocks": lambda s, i, a, d: s.get_child_blocks(i[0]),
        "GetConsumers": lambda s, i, a, d: s.get_consumers(i[0]),
        "GetLoops": lambda s, i, a, d: s.get_loops(i[0]),
        "GetProducers": lambda s, i, a, d: s.get_producers(i[0]),
        "GetSBlock": lambda s, i, a, d: s.get_sblock(str(a[0]), str(a[1])),
        "Parallel": lambda s, i, a, d: s.parallel(i[0]),
        "RFactor": lambda s, i, a, d: s.rfactor(i[0], int(a[0])),
        "Reorder": lambda s, i, a, d: s.reorder(*i),
        "ReorderBlockIterVar": lambda s, i, a, d: s.reorder_block_iter_var(
            i[0], [int(n) for n in i[1]]
        ),
        "ReverseComputeAt": lambda s, i, a, d: s.reverse_compute_at(
            i[0], i[1], bool(a[0]), int(a[1])
        ),
        "ReverseComputeInline": lambda s, i, a, d: s.reverse_compute_inline(i[0]),
        "SampleCategorical": _sample_categorical,
        "SampleComputeLocation": lambda s, i, a, d: s.sample_compute_location(i[0], d),
        "SamplePerfectTile": _sample_perfect_tile,
        "Split": lambda s, i, a, d: s.split(i[0], list(i[1:]), bool(a[0]), bool(a[1])),
        "StorageAlign": lambda s, i, a, d: s.storage_align(i[0], *(int(n) for n in a)),
        "Unannotate": lambda s, i, a, d: s.unannotate(i[0], str(a[0])),
        "Unroll": lambda s, i, a, d: s.unroll(i[0]),
        "Vectorize": lambda s, i, a, d: s.vectorize(i[0]),
    }
)  # fmt: skip
"""Takes a schedule, an instruction's inputs and attributes, and its decision."""
