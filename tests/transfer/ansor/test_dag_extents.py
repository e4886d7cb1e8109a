"""Extents that a DAG's text leaves out: by hand, and where they aren't determined."""

import pytest

from tests.transfer.ansor.fixtures import load
from tvm_ext.transfer.ansor.dag_extents import infer_extents
from tvm_ext.transfer.ansor.dag_flops import dag_flops
from tvm_ext.transfer.ansor.dag_parse import parse_dag
from tvm_ext.transfer.ansor.errors import DagError


def window(size, output, stride=1, pad=None, end=None):
    """A maximum over a window, along one axis."""
    lines, source = [f"x = PLACEHOLDER [{size}]"], "x"
    if pad is not None:
        guard = f"((i >= {pad}) && (i < {size + pad}))" if pad else f"(i < {size})"
        lines.append(f"pad(i) = tir.if_then_else({guard}, x[(i - {pad})], 0f)")
        source = "pad"
    lines.append(f"out(i) max= {source}[((i*{stride}) + r)]")
    return parse_dag("\n".join(lines)), [[output]]


@pytest.mark.parametrize(("size", "output", "expected"), [(9, 7, 3), (7, 7, 1), (7, 1, 7)])
def test_a_window_of_stride_1_fills_its_input(size, output, expected):
    extents = infer_extents(*window(size, output))
    assert extents == {"out": {"i": output, "r": expected}}


def test_a_window_of_stride_2_can_be_of_two_sizes():
    dag, outputs = window(112, 55, stride=2)
    with pytest.raises(DagError, match=r"out\.r: 3 to 4.*give flops or reduce_extents"):
        infer_extents(dag, outputs)
    for size in (3, 4):
        assert infer_extents(dag, outputs, flops=55 * size)["out"]["r"] == size
        assert infer_extents(dag, outputs, reduce_extents={"r": size})["out"]["r"] == size
        assert infer_extents(dag, outputs, reduce_extents={"out.r": size})["out"]["r"] == size
    with pytest.raises(DagError, match="no extents of its reductions make 275 operations"):
        infer_extents(dag, outputs, flops=55 * 5)


def test_behind_padding_evidence_is_needed():
    dag, outputs = window(13, 13, pad=1)
    with pytest.raises(DagError, match="reduces r behind padding, whose end the text doesn't say"):
        infer_extents(dag, outputs)
    extents = infer_extents(dag, outputs, flops=13 * 3)
    assert extents == {"pad": {"i": 15}, "out": {"i": 13, "r": 3}}


def test_padding_at_the_end_alone():
    dag, outputs = window(6, 1, pad=0)
    assert infer_extents(dag, outputs, flops=7) == {"pad": {"i": 7}, "out": {"i": 1, "r": 7}}


def test_a_stage_is_as_large_as_what_is_read_of_it():
    # 112 padded by 1 on both sides is 114; a window of 3 with stride 2 reads 113.
    dag, outputs = window(112, 56, stride=2, pad=1)
    assert infer_extents(dag, outputs, flops=56 * 3)["pad"] == {"i": 113}


def test_blocked_channels_are_walked_by_one_axis():
    dag = parse_dag(
        "x = PLACEHOLDER [4, 9, 16]\n"
        "w = PLACEHOLDER [3, 4, 16]\n"
        "out(o, h) += (x[floordiv(c, 16), (h + k), floormod(c, 16)]"
        "*w[k, floordiv(c, 16), floormod(c, 16)])"
    )
    assert infer_extents(dag, [[2, 7]]) == {"out": {"o": 2, "h": 7, "c": 64, "k": 3}}


def test_a_concatenation_and_what_reads_it():
    dag = parse_dag(
        "a = PLACEHOLDER [4]\n"
        "b = PLACEHOLDER [6]\n"
        "both(i) = tir.if_then_else((i >= 4), b[(i - 4)], a[i])\n"
        "out(i) = (both[i]*2f)"
    )
    assert infer_extents(dag, [[10]]) == {"both": {"i": 10}, "out": {"i": 10}}


def test_an_intermediate_that_feeds_a_concatenation_is_no_larger_than_its_part():
    dag = parse_dag(
        "x = PLACEHOLDER [10]\n"
        "a(i) = (x[i] + 1f)\n"
        "b(i) = (x[i] + 2f)\n"
        "out(i) = tir.if_then_else((i >= 4), b[(i - 4)], a[i])"
    )
    extents = infer_extents(dag, [[10]])
    assert (extents["a"], extents["b"]) == ({"i": 4}, {"i": 6})


def test_an_axis_that_nothing_bounds():
    dag = parse_dag("x = PLACEHOLDER [4]\nout(i) += (x[i]*select((r == 0), 1f, 2f))")
    with pytest.raises(DagError, match="nothing says how far r of out runs; give reduce_extents"):
        infer_extents(dag, [[4]])


@pytest.mark.parametrize("given", [0, 4])
def test_a_given_extent_that_reads_outside(given):
    dag, outputs = window(9, 7)
    with pytest.raises(DagError, match=f"r of out is given as {given}; allowed: 1 to 3"):
        infer_extents(dag, outputs, reduce_extents={"r": given})


def test_a_shape_of_another_rank():
    dag, _ = window(4, 4)
    with pytest.raises(DagError, match=r"out has 1 axes, its shape is \[4, 4\]"):
        infer_extents(dag, [[4, 4]])


def test_the_operations_are_those_that_ansor_counts():
    tasks = load("tasks")
    assert len(tasks) > 80
    for task in tasks:
        dag = parse_dag(task["dag"])
        # A window of the extents' own making would prove nothing: reductions here are known.
        extents = infer_extents(dag, [task["shapes"][-1]], reduce_extents=known_windows(dag))
        assert dag_flops(dag, extents) == task["flops"]


def known_windows(dag):
    """The windows of both networks' pools: 3x3, and the global ones 7x7; LRN's is 5 channels."""
    names = {stage.name for stage in dag.stages}
    if "pool_max" in names:
        return {"rv0": 3, "rv1": 3}
    if "pool_sum" in names:
        return {"rv0": 7, "rv1": 7}
    return {"rxs": 5}
