"""Convolutions of tasks against what a person reads in their DAGs."""

from collections import Counter

import pytest

from benchmarks.replay_convs import convolution
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.transfer.ansor import shipped_records


def task(network, operators):
    return next(
        t
        for t in shipped_records()
        if (t.origin.network, t.operators) == (network, f"vm_mod_fused_nn_{operators}")
    )


@pytest.mark.parametrize(
    ("operators", "wanted"),
    [
        (
            "contrib_conv2d_NCHWc_add_nn_relu",
            ConvWorkload(1, 3, (224, 224), 64, (7, 7), (2, 2), (3, 3), (2, 2), (1, 1)),
        ),
        (
            "contrib_conv2d_NCHWc_add_nn_relu_13",
            ConvWorkload(1, 512, (14, 14), 512, (3, 3), (2, 2), (1, 1), (0, 0), (1, 1)),
        ),
        (
            "contrib_conv2d_NCHWc_add_1",
            ConvWorkload(1, 256, (56, 56), 512, (1, 1), (2, 2), (0, 0), (0, 0), (1, 1)),
        ),
        (
            "contrib_conv2d_NCHWc_add_nn_relu_12",
            ConvWorkload(1, 1024, (14, 14), 512, (1, 1), (1, 1), (0, 0), (0, 0), (1, 1)),
        ),
        ("softmax", None),
    ],
)
def test_by_hand(operators, wanted):
    assert convolution(task("resnet50", operators)) == wanted


def test_every_convolution_counts_as_ansor_does():
    """Ansor counts the multiplications and additions, and the stages fused to them."""
    counts = Counter()
    for t in shipped_records():
        workload = convolution(t)
        counts[workload is None] += 1
        assert (workload is None) == ("conv2d" not in t.operators)
        if workload is not None:
            assert 1 < t.flops / workload.flops < 1.1
    assert counts == {False: 61, True: 13}
