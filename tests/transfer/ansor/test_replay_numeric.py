"""Records compiled and run: what they compute against numpy in float64."""

import numpy as np
import pytest

from tests.transfer.ansor.fixtures import (
    assert_close,
    library,
    load,
    random_inputs,
    run,
    workload,
)
from tvm_ext.transfer.ansor import ComputeDag, replay


def smallest_of_each_class():
    """Of every hash, the record with the fewest operations."""
    flops = {(t["key"], str(t["shapes"])): t["flops"] for t in load("tasks")}
    found = {}
    for record in sorted(load("golden"), key=lambda r: flops[r["key"], str(r["shapes"])]):
        found.setdefault(record["key"], record)
    return list(found.values())


RECORDS = smallest_of_each_class()


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: f"{r['network']}-{r['line']}")
def test_the_result_is_right(record):
    dag = library().find(workload(record))
    inputs = random_inputs(dag)
    (expected,) = dag.evaluate(inputs)
    assert_close(run(replay(dag, record["steps"]).schedule.mod, dag, inputs), expected)


@pytest.mark.parametrize("factor", [1, 3, 4, 5, 7, 100])
def test_factors_that_dont_divide(factor):
    text = "a = PLACEHOLDER [5, 13]\nb(i, j) = (a[i, j]*2f)\nc(i) += b[i, k]"
    dag = ComputeDag.parse(text, [[5, 13], [5]])
    steps = [
        ["SP", 2, 0, 5, [2], 1],
        ["SP", 2, 2, 13, [factor], 1],
        ["RE", 2, [0, 2, 1, 3]],
        ["CA", 1, 2, 1],
        ["SP", 1, 1, 13, [2, factor], 0],
    ]
    replayed = replay(dag, steps)
    # 5 by 2; 13 by all factors but 1 and, cut to the loop, 100; step 4 splits what step 3 leaves.
    assert {0} <= set(replayed.imperfect_splits) <= {0, 1, 4}
    assert (1 in replayed.imperfect_splits) == (factor in (3, 4, 5, 7))
    inputs = random_inputs(dag)
    expected = 2 * inputs[0].astype("float64").sum(1)
    assert_close(run(replayed.schedule.mod, dag, inputs), expected)


def test_splits_count_from_the_outside_too():
    dag = ComputeDag.parse("a = PLACEHOLDER [12]\nb(i) = (a[i]*2f)", [[12], [12]])
    replayed = replay(dag, [["SP", 1, 0, 12, [2, 3], 0]])
    assert [line.value for line in replayed.structure] == [2, 3, 2, "b"]
    np.testing.assert_array_equal(
        run(replayed.schedule.mod, dag, [np.arange(12, dtype="float32")]), 2 * np.arange(12)
    )


def test_a_stage_without_axes_gets_a_loop():
    text = "a = PLACEHOLDER [6]\nb() += a[k]\nc() = (b[]*2f)"
    dag = ComputeDag.parse(text, [[6], []])
    steps = [["FU", 2, []], ["AN", 2, 0, 3], ["PR", 1, 0, "auto_unroll_max_step$16"]]
    inputs = [np.arange(6, dtype="float32")]
    assert run(replay(dag, steps).schedule.mod, dag, inputs) == 30
