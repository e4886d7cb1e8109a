"""What the kernel of spatial pack counts; its results are tested with the algorithm's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.schedules.kernels import NEON
from tests.schedules.oracles import conv_workload
from tests.schedules.pooled_convolutions import with_pool
from tvm_ext.schedules import spatial_pack_kernel as kernel
from tvm_ext.schedules import spatial_pack_weights
from tvm_ext.schedules.conv_geometry import ConvGeometry
from tvm_ext.schedules.conv_workload import ConvWorkload


def test_output_channels_are_whole_vectors_of_a_group() -> None:
    w = conv_workload(12, (5, 5), 18, 3, groups=3)
    assert spatial_pack_weights.group_blocks(w, NEON) == 2  # six channels in vectors of four
    assert spatial_pack_weights.group_blocks(replace(w, groups=1), NEON) == 5


@pytest.mark.parametrize(("channels", "groups", "step"), [(12, 1, 4), (12, 2, 2), (5, 1, 1)])
def test_unrolled_channels_are_in_one_group_and_block(
    channels: int, groups: int, step: int
) -> None:
    w = conv_workload(channels, (5, 5), 8, 3, groups=groups)
    assert spatial_pack_weights.reduction_step(w, NEON) == step


@pytest.mark.parametrize(
    ("workload", "extent"),
    [
        (conv_workload(8, (6, 7), 8, 3, 1, 1), 6),  # rows of the output
        (conv_workload(8, (3, 6, 7), 8, 3, 1, 1), 6),  # rows of a slice
        (conv_workload(8, (6, 7), 8, 1), 42),  # positions
        (conv_workload(8, (6, 7), 8, 1, 2), 3),  # rows that the strides leave
        (with_pool(conv_workload(8, (6, 7), 8, 1), "max", 3, 2), 2),  # rows of the pool
    ],
    ids=["window", "three dimensions", "1x1", "1x1 stride 2", "pool"],
)
def test_chunks_are_of_rows_or_positions(workload: ConvWorkload, extent: int) -> None:
    assert kernel.chunk_extent(workload, ConvGeometry.of(workload)) == extent
