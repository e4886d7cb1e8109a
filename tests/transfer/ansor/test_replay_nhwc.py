"""ResNet-50's records in NHWC on AVX2, whose log has hashes but no DAGs.

The DAGs here are written from what TOPI's operators compute, by the number and shapes of each
record's arguments. Ansor's hash can't confirm them; the records do: their steps name every stage
and the extent of every axis that they split, and `replay` refuses a step that doesn't fit.
"""

import pytest
import torch

from tests.transfer.ansor.fixtures import assert_close, load, random_inputs, run
from tests.transfer.ansor.nhwc import average_pool, conv, max_pool, softmax
from tvm_ext.transfer.ansor import ComputeDag, replay

RECORDS = load("nhwc")
CLASSES = {
    "d7b65649a4dd54becea0a52aabbc5af5": (softmax, ""),
    "69115f188984ae34ede37c3b8ca40b43": (average_pool, ""),
    "a5612fdeb9db4d579a75ec225ea4c06a": (max_pool, ""),
    "875556d12d0be2269206a7775d5296a6": (conv, "rsbR"),
    "de7d1695278cf52778b038e6573d7626": (conv, "bR"),
    "1b524af89dd867d26059e1f621cf987c": (conv, "rbR"),
    "6b7583cf23c7c37d3212cad9d06e58c1": (conv, "bR"),
    "12b88bedece6984af589a28b43e0f3c4": (conv, "bR"),
    "1cc666833c122282e3fcf3595901b12b": (conv, "r"),
    "2350d19dc42a0665244368384c66b3a5": (conv, "bR"),
    "f4380bb1dc62422a69ad4a1a9771f927": (conv, ""),
    "7006235cfc29b73be524cf390ed5a977": (conv, ""),
}


def dag_of(record):
    function, epilogue = CLASSES[record["key"]]
    text, reduce_extents, reference = function(record["sizes"], epilogue)
    return ComputeDag.parse(text, record["sizes"], reduce_extents=reduce_extents), reference


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: f"{r['key'][:6]}-{r['sizes'][1]}")
def test_the_record_replays(record):
    dag, _ = dag_of(record)
    replayed = replay(dag, record["steps"])
    assert replayed.imperfect_splits == ()


def small_of_each_class():
    """One record a hash, of the smallest map."""
    found = {}
    for record in sorted(RECORDS, key=lambda r: r["sizes"][1]):
        found.setdefault(record["key"], record)
    return list(found.values())


@pytest.mark.parametrize(
    "record", small_of_each_class(), ids=lambda r: f"{r['key'][:6]}-{r['sizes'][1]}"
)
def test_the_result_is_right(record):
    dag, reference = dag_of(record)
    inputs = random_inputs(dag)
    expected = reference(*[torch.from_numpy(array).double() for array in inputs]).numpy()
    assert_close(run(replay(dag, record["steps"]).schedule.mod, dag, inputs), expected)
