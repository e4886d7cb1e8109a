"""The convolution of an Ansor task, for kernels of our own."""

from __future__ import annotations

import re

from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.transfer.ansor import ShippedTask

_STAGE = "conv2d_NCHWc"


def convolution(task: ShippedTask) -> ConvWorkload | None:
    """The workload of a blocked convolution, without what is fused to it; None for other tasks.

    Sizes are those of the task's shapes, padding and strides are read from its printed DAG, such
    as ``p0[n, 0, ((oh*2) + kh), ...]`` and ``(i2 - 3)``.

    Raises
    ------
    ValueError
        The output's size doesn't follow from these.
    """
    stage = re.search(rf"^{_STAGE}\(.*\) \+= .*$", task.text, re.MULTILINE)
    if stage is None:
        return None
    data, weights, *_, out = task.workload.arguments
    batch, in_chunks, height, width, in_block = data
    out_chunks, _, *kernel, _, out_block = weights
    strides = tuple([_number(rf"\({axis}\*(\d+)\)", stage.group(), 1) for axis in ("oh", "ow")])
    before = tuple([_number(rf"\({axis} - (\d+)\)", task.text, 0) for axis in ("i2", "i3")])
    # Behind it stands as much as the output's size needs.
    after = tuple(
        [
            max(0, (o - 1) * s + k - i - p)
            for o, s, k, i, p in zip(
                out[2:4], strides, kernel, (height, width), before, strict=True
            )
        ]
    )
    workload = ConvWorkload(
        batch, in_chunks * in_block, (height, width), out_chunks * out_block,
        (kernel[0], kernel[1]), strides, before, after, (1, 1),
    )  # fmt: skip
    if workload.out_spatial != tuple(out[2:4]):
        raise ValueError(
            f"{task.operators}: the output is {list(out[2:4])}, not {list(workload.out_spatial)}"
        )
    return workload


def _number(pattern: str, text: str, default: int) -> int:
    found = re.search(pattern, text)
    return int(found.group(1)) if found else default
