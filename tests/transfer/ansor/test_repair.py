"""Variants of records: the loops they have by hand, what they compute against numpy in float64."""

import numpy as np
import pytest
import tvm
from tvm.target import Target

from tests.transfer.ansor.fixtures import assert_close, library, load, random_inputs, workload
from tvm_ext.transfer.ansor import ComputeDag, ReplayError, repaired
from tvm_ext.transfer.ansor.repair import NO_LOOP_VECTORIZER, without_loop_vectorizer
from tvm_ext.transfer.ansor.step_fields import parse_steps
from tvm_ext.transfer.ansor.vector_loops import with_full_vectors, with_vector_loops

LLVM = Target({"kind": "llvm"})
# Registers of 8, which not every machine that runs the tests has, but LLVM makes do with others.
AVX2 = Target({"kind": "llvm", "mcpu": "core-avx2"})
OFF = ", no_loop_vectorizer"
MATMUL = """
a = PLACEHOLDER [6, 8]
b = PLACEHOLDER [8, 24]
product(i, j) += (a[i, k]*b[k, j])
out(x, y) = max(product[x, y], 0f)
"""
SHAPES = [[6, 8], [8, 24], [6, 24]]


def matmul():
    return ComputeDag.parse(MATMUL, SHAPES)


def tiled(lengths, own=(1, 2)):
    """The product tiled by `lengths` inside the output's, which follows by two lengths."""
    return [
        ["SP", 2, 0, 6, [1, *own], 1],
        ["SP", 2, 4, 24, list(lengths), 1],
        ["SP", 2, 8, 8, [4], 1],
        ["RE", 2, [0, 4, 1, 5, 8, 2, 6, 9, 3, 7]],
        ["FSP", 3, 0, 0, 2],
        ["FSP", 3, 3, 1, 2],
        ["RE", 3, [0, 3, 1, 4, 2, 5]],
        ["CA", 2, 3, 3],
        ["AN", 2, 9, 2],
        ["AN", 3, 5, 2],
    ]


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ((2, 3, 1), [2, 1, 3]),
        ((4, 1, 1), [1, 1, 4]),
        # All in the outer loop: the largest divisor of 24 up to 16.
        ((1, 1, 1), [1, 1, 12]),
        ((1, 2, 3), None),
    ],
)
def test_factors_by_hand(lengths, expected):
    widened = with_vector_loops(matmul(), parse_steps(tiled(lengths)))
    wanted = tiled(lengths)
    if expected is None:
        assert widened is None
    else:
        wanted[1][4] = expected
        assert widened == parse_steps(wanted)


def test_a_vector_loop_that_follows_a_split_widens_the_split():
    steps = [["SP", 2, 1, 24, [4, 1, 1], 1], ["FSP", 3, 1, 0, 2], ["AN", 3, 3, 2]]
    # The output has the lengths 4 and 1 times 1.
    widened = with_vector_loops(matmul(), parse_steps(steps))
    assert widened[0].lengths == (1, 1, 4)
    assert widened[1:] == parse_steps(steps)[1:]


def test_other_vector_loops_stay():
    dag = matmul()
    for steps in (
        # From the outside the last part is what is left over.
        [["SP", 2, 1, 24, [1, 1], 0], ["AN", 2, 3, 2]],
        # Not the innermost part.
        [["SP", 2, 1, 24, [1, 1], 1], ["AN", 2, 2, 2]],
        [["AN", 2, 1, 2]],
    ):
        assert with_vector_loops(dag, parse_steps(steps)) is None


@pytest.mark.parametrize(
    ("lengths", "lanes", "expected"),
    [
        # 24 = 1 x 2 x 3 x 4: the 4 takes the 2 of its neighbour.
        ((2, 3, 4), 8, [1, 3, 8]),
        ((3, 2, 2), 8, [3, 1, 8]),
        # The factor comes from the loop outside.
        ((3, 1, 4), 8, [3, 1, 8]),
        ((1, 1, 1), 4, [1, 1, 4]),
        # Full, not a part of a register, or not divisible.
        ((1, 1, 8), 8, None),
        ((1, 1, 3), 4, None),
        ((1, 1, 4), 16, None),
    ],
)
def test_full_vectors_by_hand(lengths, lanes, expected):
    filled = with_full_vectors(matmul(), parse_steps(tiled(lengths)), lanes)
    wanted = tiled(lengths)
    if expected is None:
        assert filled is None
    else:
        wanted[1][4] = expected
        assert filled == parse_steps(wanted)


def run(variant, dag, inputs):
    executable = tvm.compile(variant.schedule.mod, target=variant.target)
    out = tvm.runtime.tensor(np.full(dag.arguments[-1][1], np.nan, "float32"))
    executable["main"](*[tvm.runtime.tensor(array) for array in inputs], out)
    return out.numpy()


@pytest.mark.parametrize("lengths", [(2, 3, 1), (4, 1, 1), (1, 1, 1), (5, 1, 1), (1, 7, 1)])
def test_variants_compute_the_same(lengths):
    dag = matmul()
    variants = repaired(dag, tiled(lengths), AVX2)
    names = ["replayed", "vector_loops", "full_vectors"]
    if any(24 % n for n in lengths):
        names.remove("full_vectors")
    assert [v.name for v in variants] == [name + off for name in names for off in ("", OFF)]
    inputs = random_inputs(dag)
    a, b = (array.astype("float64") for array in inputs)
    for variant in variants:
        assert_close(run(variant, dag, inputs), np.maximum(a @ b, 0))


def scalar_records():
    """Of every hash the least work among records that have a vector loop of one step."""
    flops = {(t["key"], str(t["shapes"])): t["flops"] for t in load("tasks")}
    found = {}
    for record in sorted(load("golden"), key=lambda r: flops[r["key"], str(r["shapes"])]):
        if record["key"] not in found:
            dag = library().find(workload(record))
            if with_vector_loops(dag, parse_steps(record["steps"])) is not None:
                found[record["key"]] = record
    return list(found.values())


def test_records_of_ansor():
    records = scalar_records()
    assert len(records) >= 3
    for record in records[:3]:
        dag = library().find(workload(record))
        inputs = random_inputs(dag)
        (expected,) = dag.evaluate(inputs)
        variant = repaired(dag, record["steps"], LLVM)[2]
        assert variant.name == "vector_loops"
        assert "T.vectorized(1)" not in variant.schedule.mod.script()
        assert_close(run(variant, dag, inputs), expected)


def test_the_option_joins_those_of_the_target():
    target = Target({"kind": "llvm", "mcpu": "skylake-avx512", "cl-opt": ["-unroll-threshold=99"]})
    off = without_loop_vectorizer(target)
    assert list(off.attrs["cl-opt"]) == ["-unroll-threshold=99", NO_LOOP_VECTORIZER]
    assert off.attrs["mcpu"] == "skylake-avx512"
    names = [variant.name for variant in repaired(matmul(), tiled((1, 2, 3)), off)]
    assert names == ["replayed"]


def test_a_record_that_cant_be_replayed():
    with pytest.raises(ReplayError, match="step 0, CI"):
        repaired(matmul(), [["CI", 0]], LLVM)
