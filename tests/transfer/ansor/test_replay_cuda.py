"""Records of CUDA GPUs whose logs have hashes but no DAGs: ResNet-18 in NHWC, and BERT.

As in `test_replay_nhwc`, the DAGs are written from what TOPI's operators compute. Of BERT's
products the shapes come from the extents that the steps split, since its keys have none. Winograd
convolutions, and BERT's softmax, mean and last layers, aren't here: a hash doesn't tell their
stages.
"""

import pytest
import torch

from tests.transfer.ansor.fixtures import assert_close, load, on_cpu, random_inputs, run
from tests.transfer.ansor.nhwc import average_pool, conv, max_pool, softmax
from tvm_ext.transfer.ansor import ComputeDag, replay

RECORDS = load("cuda")


def dense(sizes, _):
    rows, inner, columns = sizes[0], sizes[1], sizes[2]
    text = f"""
p0 = PLACEHOLDER [{rows}, {inner}]
p1 = PLACEHOLDER [{columns}, {inner}]
T_matmul_NT(i, j) += (p0[i, k]*p1[j, k])
p2 = PLACEHOLDER [1, {columns}]
T_add(i, j) = (T_matmul_NT[i, j] + p2[0, j])
"""
    return text, {}, lambda x, w, b: x @ w.T + b


def batch_product(sizes, _):
    batch, rows, inner, _, columns = sizes[:5]
    text = f"""
p0 = PLACEHOLDER [{batch}, {rows}, {inner}]
p1 = PLACEHOLDER [{batch}, {columns}, {inner}]
T_batch_matmul_NT(b, i, j) += (p0[b, i, k]*p1[b, j, k])
"""
    return text, {}, lambda a, b: a @ b.mT


def dag_of(record):
    shapes = record["shapes"]
    sizes = [size for shape in shapes for size in shape]
    match [len(shape) for shape in shapes]:
        case [4, 4, 4, 4]:
            # A residual has the shape of the output, a bias one value a channel.
            function, epilogue = conv, "r" if shapes[2] == shapes[3] else "bR"
        case [4, 4, 4] if shapes[1][1] == 1 and shapes[1][2] == 1:
            function, epilogue = max_pool, ""
        case [4, 4, 4]:
            function, epilogue = conv, ""
        case [4, 4, 4, 4, 4]:
            function, epilogue = conv, "rbR"
        case [4, 4]:
            function, epilogue = average_pool, ""
        case [2, 2]:
            function, epilogue = softmax, ""
        case [3, 3, 3]:
            function, epilogue = batch_product, ""
        case _:
            function, epilogue = dense, ""
    text, reduce_extents, reference = function(sizes, epilogue)
    return ComputeDag.parse(text, shapes, reduce_extents=reduce_extents), reference


def name(record):
    return f"{record['key'][:6]}-{record['shapes'][0]}"


@pytest.mark.parametrize("record", RECORDS, ids=name)
def test_the_record_replays(record):
    dag, _ = dag_of(record)
    tags = {line.kind for line in replay(dag, record["steps"]).structure}
    assert "threadIdx.x" in tags


def small():
    """Products of at most 768 columns of the weights, or of one row, and a softmax."""
    dense = [r for r in RECORDS if len(r["shapes"][0]) == 2]
    return [r for r in dense if r["shapes"][0][0] == 1 or r["shapes"][1] == [768, 768]]


@pytest.mark.parametrize("record", small(), ids=name)
def test_dense_layers_and_softmax_are_right(record):
    dag, reference = dag_of(record)
    inputs = random_inputs(dag)
    expected = reference(*[torch.from_numpy(array).double() for array in inputs]).numpy()
    module = on_cpu(replay(dag, record["steps"]).schedule.mod)
    assert_close(run(module, dag, inputs), expected)
