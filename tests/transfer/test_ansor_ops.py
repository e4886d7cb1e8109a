"""Classes of Ansor's computations, and of the same operators as our own layers have them."""

from __future__ import annotations

import pytest

from tests.transfer.ansor_logs import task
from tests.transfer.programs import conv
from tvm_ext.transfer.ansor_ops import stage_ops


@pytest.mark.parametrize(
    ("labels", "ops"),
    [
        ("data_pad conv2d_NCHWc T_add T_add T_relu", "nn.conv2d add add nn.relu"),
        ("pad_temp conv2d_nhwc", "nn.conv2d"),
        ("pad_temp pool_sum pool_avg", "nn.avg_pool2d"),
        ("T_softmax_maxelem T_softmax_exp T_softmax_expsum T_softmax_norm", "nn.softmax"),
        ("T_matmul_NT T_add T_sigmoid", "matmul add sigmoid"),
        ("matmul.local mine", "matmul.local mine"),
    ],
)
def test_stages_are_parts_of_operators(labels: str, ops: str) -> None:
    assert stage_ops(labels.split()) == tuple(ops.split())


def test_a_shipped_computation_has_the_class_of_our_layer() -> None:
    stages = task("conv2d_NCHWc_add_nn_relu").dag.stages
    found = stage_ops(stage.label for stage in stages if not stage.placeholder)
    assert found == conv(4, 8, 6, 3).workload.ops
