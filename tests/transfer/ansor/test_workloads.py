"""Named workloads: what they compute against NumPy, SciPy and PyTorch, and their records."""

import numpy as np
import pytest
import scipy.sparse
import torch
import torch.nn.functional as F

from tests.transfer.ansor.fixtures import assert_close, load, random_inputs, run
from tvm_ext.transfer.ansor import ComputeDag, DagError, register_workload, replay
from tvm_ext.transfer.ansor.workloads import (
    conv2d_layer,
    matmul_add,
    named_dag,
    sparse_dense,
)
from tvm_ext.transfer.record import Workload, nested_tuple


@pytest.mark.parametrize("record", load("named"), ids=lambda r: r["key"])
def test_the_tutorials_records_replay(record):
    dag = named_dag(Workload(record["key"], nested_tuple(record["arguments"]), "named"))
    replayed = replay(dag, record["steps"])
    assert len(replayed.structure) > 5


def test_a_matrix_product_of_a_record():
    (record,) = [r for r in load("named") if r["key"] == "matmul_add"]
    dag = matmul_add(*record["arguments"])
    a, b, c = random_inputs(dag)
    replayed = replay(dag, record["steps"])
    expected = a.astype("float64") @ b + c
    assert_close(run(replayed.schedule.mod, dag, [a, b, c]), expected)


@pytest.mark.parametrize(
    ("stride", "padding"), [((1, 1), (1, 1)), ((2, 1), (0, 1)), ((2, 2), (0, 0))]
)
def test_a_convolution(stride, padding):
    dag = conv2d_layer(2, 9, 8, 5, 4, 3, 3, stride, padding)
    inputs = random_inputs(dag)
    x, w, b = (torch.from_numpy(array).double() for array in inputs)
    expected = F.conv2d(x, w, b.flatten(), stride, padding).relu().numpy()
    assert_close(run(replay(dag, []).schedule.mod, dag, inputs), expected)
    assert_close(dag.evaluate(inputs)[0], expected)


def test_a_sparse_product_with_the_tutorials_steps():
    (record,) = [r for r in load("named") if r["key"] == "sparse_dense"]
    rng = np.random.default_rng(0)
    dense = rng.standard_normal((64, 48)).astype("float32")
    # Blocks of 16x1, a third of them; one row of blocks has none.
    dense *= np.repeat(rng.random((4, 48)) < 0.3, 16, axis=0)
    dense[16:32] = 0
    matrix = scipy.sparse.bsr_array(dense, blocksize=(16, 1))
    shapes = [tuple(a.shape) for a in (matrix.data, matrix.indices, matrix.indptr)]
    dag = sparse_dense(32, 64, 48, *shapes, "float32")
    # The record's own splits, for 4 instead of 32 rows of blocks and 32 instead of 512 inputs.
    steps = [list(step) for step in record["steps"]]
    assert (steps[2][3:5], steps[4][3:5]) == ([512, [1, 8]], [32, [32]])
    steps[2][3:5], steps[4][3:5] = [32, [1, 8]], [4, [4]]
    x = rng.standard_normal((32, 48)).astype("float32")
    bias = rng.standard_normal((32, 64)).astype("float32")
    inputs = [x, matrix.data, matrix.indices, matrix.indptr, bias]
    expected = np.maximum(np.maximum(x, 0).astype("float64") @ dense.T + bias, 0)
    assert_close(run(replay(dag, steps).schedule.mod, dag, inputs), expected)
    assert_close(dag.evaluate(inputs)[0], expected)


def test_blocks_that_dont_make_the_matrix():
    with pytest.raises(DagError, match=r"blocks of 16 x 1 and indptr \[4\] don't make a matrix"):
        sparse_dense(32, 64, 48, (9, 16, 1), (9,), (4,), "float32")


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        (
            "matmul",
            (1,),
            "no workload is registered as 'matmul'; registered: conv2d_layer, matmul_",
        ),
        ("matmul_add", (1, 2), "matmul_add doesn't take"),
        ("matmul_add", (1, 2, 3, "int8"), "dtype 'int8'; allowed: float16, float32, float64"),
        ("conv2d_layer", (1, 7, 7, 8, 8, 3, 3, 1, 1), "conv2d_layer doesn't take"),
    ],
)
def test_what_isnt_registered_or_doesnt_fit(name, arguments, message):
    with pytest.raises(DagError, match=message):
        named_dag(Workload(name, arguments, "named"))


def test_a_users_own(monkeypatch):
    monkeypatch.setattr("tvm_ext.transfer.ansor.workloads._FUNCTIONS", {})

    @register_workload("double")
    def double(size):
        text = f"a = PLACEHOLDER [{size}]\nb(i) = (a[i]*2f)"
        return ComputeDag.parse(text, [[size], [size]])

    dag = named_dag(Workload("double", (5,), "named"))
    assert dag.arguments == (("a", (5,)), ("b", (5,)))
    with pytest.raises(DagError, match="a workload named 'double' is registered already"):
        register_workload("double")(double)
