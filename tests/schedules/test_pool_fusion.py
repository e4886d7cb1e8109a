"""When a pool inside a convolution's kernel is estimated to pay."""

from __future__ import annotations

from dataclasses import replace

from tests.schedules.kernels import HOST, NEON
from tests.schedules.oracles import conv_workload
from tests.schedules.pooled_convolutions import with_pool
from tvm_ext.schedules.base import algorithms
from tvm_ext.schedules.pool_fusion import fused_pool_pays


def test_a_first_layer_pays() -> None:
    """Its output is many times as large as all that it reads."""
    w = with_pool(conv_workload(3, (224, 224), 64, 3, 1, 1), "max", 2, 2)
    assert fused_pool_pays(w, HOST)
    assert fused_pool_pays(w, replace(HOST, cores=1))
    assert fused_pool_pays(w, NEON)


def test_rows_that_every_task_repeats_do_not_pay() -> None:
    """A window as tall as the map leaves one task, and with it one core."""
    w = with_pool(conv_workload(64, (56, 56), 64, 3, 1, 1), "max", (56, 1), 1)
    assert algorithms()["winograd_4x4"].supports(w, HOST)
    assert not fused_pool_pays(w, replace(HOST, cores=64))


def test_what_no_algorithm_takes_does_not_pay() -> None:
    w = with_pool(conv_workload(13, (9, 9), 13, 3, 1, 1, groups=13), "max", 2, 2)
    assert not fused_pool_pays(replace(w, dtype="float16"), HOST)
