"""Records of GPUs: caches, thread bindings and alignment; run on the CPU as plain loops."""

import re

import pytest

from tests.transfer.ansor.fixtures import assert_close, load, on_cpu, random_inputs, run
from tvm_ext.transfer.ansor import ComputeDag, replay
from tvm_ext.transfer.ansor.workloads import conv2d_layer, named_dag
from tvm_ext.transfer.record import Workload, nested_tuple


def small_conv():
    """The tutorial's record with 32 instead of 512 channels: its two channel splits are smaller."""
    (record,) = [r for r in load("named") if r["key"] == "conv2d_layer"]
    steps = nested_tuple(record["steps"])
    assert (steps[2], steps[5]) == (
        ("SP", 3, 5, 512, (1, 64, 2, 1), 1),
        ("SP", 3, 20, 512, (4, 2), 1),
    )
    steps = list(steps)
    steps[2] = ("SP", 3, 5, 32, (1, 4, 2, 1), 1)
    steps[5] = ("SP", 3, 20, 32, (4, 2), 1)
    return conv2d_layer(1, 7, 7, 32, 32, 3, 3, (1, 1), (1, 1)), steps


def test_a_convolution_with_shared_memory_is_right():
    dag, steps = small_conv()
    replayed = replay(dag, steps)
    inputs = random_inputs(dag)
    (expected,) = dag.evaluate(inputs)
    assert_close(run(on_cpu(replayed.schedule.mod), dag, inputs), expected)


def test_the_tutorials_convolution_by_hand():
    (record,) = [r for r in load("named") if r["key"] == "conv2d_layer"]
    dag = named_dag(Workload(record["key"], nested_tuple(record["arguments"]), "named"))
    replayed = replay(dag, record["steps"])
    # The lengths of the splits: 28 blocks of 512 / (64 * 2) * 7 parts, 64 threads, and inside 64
    # rounds of 8 input channels by 3 rows of the kernel.
    assert [str(line) for line in replayed.structure] == [
        "blockIdx.x 28",
        "  threadIdx.x 64",
        "    auto_unroll 512",
        "    for 64",
        "      for 3",
        "        for 48",
        "          threadIdx.x 64",
        "            stage kernel.shared",
        "        threadIdx.x 64",
        "          vectorize 4",
        "            stage pad_temp.shared",
        "        for 4",
        "          for 3",
        "            for 2",
        "              for 7",
        "                for 2",
        "                  stage conv2d_nchw",
        "    for 2",
        "      for 7",
        "        stage compute",
    ]
    # 504 values of the padded input, 4 by 4, are no multiple of 64 threads.
    assert len(replayed.imperfect_splits) == 1


DENSE = """
a = PLACEHOLDER [16, 32]
b = PLACEHOLDER [24, 32]
out(i, j) += (a[i, k]*b[j, k])
"""


@pytest.mark.parametrize("aligned", [False, True])
def test_caches_for_reading_and_writing(aligned):
    dag = ComputeDag.parse(DENSE, [[16, 32], [24, 32], [16, 24]])
    steps = [
        ["CHW", 2, "local"],
        ["SP", 2, 0, 16, [2, 2], 1],
        ["SP", 2, 3, 24, [3, 2], 1],
        ["SP", 2, 6, 32, [8], 1],
        ["RE", 2, [0, 3, 6, 1, 4, 7, 2, 5]],
        ["FSP", 3, 0, 1, 1],
        ["FSP", 3, 2, 2, 1],
        ["RE", 3, [0, 2, 1, 3]],
        ["CA", 2, 3, 1],
        ["CHR", 1, "shared", [2]],
        ["CA", 2, 3, 2],
        ["AN", 4, 0, 5],
        ["AN", 4, 1, 6],
    ]
    if aligned:
        steps.append(["SA", 2, 0, 32, 8])
    replayed = replay(dag, steps)
    # What is shared is copied for all 4 threads at once: 4 times the 6 rows that one of them reads.
    assert [str(line) for line in replayed.structure] == [
        "blockIdx.x 4",
        "  threadIdx.x 4",
        "    for 4",
        "      for 24",
        "        for 8",
        "          stage b.shared",
        "      for 2",
        "        for 3",
        "          for 8",
        "            for 2",
        "              for 2",
        "                stage out.local",
        "    for 4",
        "      for 6",
        "        stage out",
    ]
    assert ("buffer_dim_align" in replayed.schedule.mod.script()) == aligned
    inputs = random_inputs(dag)
    expected = inputs[0].astype("float64") @ inputs[1].astype("float64").T
    assert_close(run(on_cpu(replayed.schedule.mod), dag, inputs), expected)


def test_threads_that_reduce_together_keep_the_reduction_whole():
    dag = ComputeDag.parse("a = PLACEHOLDER [8, 64]\nout(i) += a[i, k]", [[8, 64], [8]])
    steps = [["SP", 1, 1, 64, [16], 1], ["AN", 1, 0, 5], ["AN", 1, 2, 6]]
    script = replay(dag, steps).schedule.mod.script()
    assert "T.init()" in script
    assert re.findall(r"thread=\"([\w.]+)\"", script) == ["blockIdx.x", "threadIdx.x"]
