"""Printed DAGs: expressions by hand, and what can't be read, with its place."""

import pytest

from tests.transfer.ansor.fixtures import load
from tvm_ext.transfer.ansor.dag_ast import (
    Access,
    Axis,
    Binary,
    Call,
    Cast,
    Number,
    Placeholder,
    Unary,
)
from tvm_ext.transfer.ansor.dag_parse import parse_dag
from tvm_ext.transfer.ansor.errors import DagError

AXIS_I, AXIS_J = Axis("i"), Axis("j")


def body(expression):
    return parse_dag(f"p = PLACEHOLDER [8]\nout(i, j) = {expression}").computes[0].body


def test_a_padded_reduction():
    dag = parse_dag(
        "p0 = PLACEHOLDER [1, 8]\n"
        "pad(i, j) = tir.if_then_else((j >= 2), p0[i, (j - 2)], 0f)\n"
        "\n"
        "out(i) max= pad[i, k]\n"
    )
    assert dag.placeholders == (Placeholder("p0", (1, 8), "p0"),)
    pad, out = dag.computes
    read = Access("p0", (AXIS_I, Binary("-", AXIS_J, Number(2, "int32"))))
    guard = Binary(">=", AXIS_J, Number(2, "int32"))
    assert pad.body == Call("if_then_else", (guard, read, Number(0.0, "float32")))
    assert (pad.axes, pad.reduce_axes, pad.combiner) == (("i", "j"), (), None)
    assert (out.axes, out.reduce_axes, out.combiner) == (("i",), ("k",), "max")
    assert dag.outputs == (out,)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i + j*2", Binary("+", AXIS_I, Binary("*", AXIS_J, Number(2, "int32")))),
        ("(i + j)*2", Binary("*", Binary("+", AXIS_I, AXIS_J), Number(2, "int32"))),
        ("i - j - 1", Binary("-", Binary("-", AXIS_I, AXIS_J), Number(1, "int32"))),
        ("-3.40282e+38f", Number(-3.4028234663852886e38, "float32")),
        ("1e-05f", Number(1e-05, "float32")),
        ("65504h", Number(65504.0, "float16")),
        ("0.5", Number(0.5, "float64")),
        ("(int64)5", Number(5, "int64")),
        ("-i", Unary("-", AXIS_I)),
        ("float32(i)", Cast("float32", AXIS_I)),
        ("max(i, j)", Call("max", (AXIS_I, AXIS_J))),
        ("@tir.exp(p[i], dtype=float32)", Call("exp", (Access("p", (AXIS_I,)),))),
        (
            "select(!(i < j) || i == 0, 1f, 0f)",
            Call(
                "select",
                (
                    Binary(
                        "||",
                        Unary("!", Binary("<", AXIS_I, AXIS_J)),
                        Binary("==", AXIS_I, Number(0, "int32")),
                    ),
                    Number(1.0, "float32"),
                    Number(0.0, "float32"),
                ),
            ),
        ),
    ],
)
def test_expressions(text, expected):
    assert body(text) == expected


def test_a_shared_name_means_the_last_stage_of_that_name():
    dag = parse_dag(
        "a = PLACEHOLDER [4]\nt(i) = (a[i] + 1f)\nt(i) = (t[i]*t[i])\nout(i) = (t[i] - 1f)"
    )
    _, second, out = dag.computes
    assert [s.name for s in dag.computes] == ["t", "t_1", "out"]
    assert [s.label for s in dag.computes] == ["t", "t", "out"]
    assert second.body == Binary("*", Access("t", (AXIS_I,)), Access("t", (AXIS_I,)))
    assert out.body == Binary("-", Access("t_1", (AXIS_I,)), Number(1.0, "float32"))
    assert dag.outputs == (out,)


def test_a_name_that_a_stage_has_itself_isnt_given_again():
    text = "a = PLACEHOLDER [4]\nt_1(i) = a[i]\nt(i) = t_1[i]\nt(i) = t[i]"
    assert [s.name for s in parse_dag(text).computes] == ["t_1", "t", "t_2"]


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("p0 = PLACEHOLDER [1, 0]", (1, 22), "'0'; expected a size"),
        ("p0 = INPUT [1]", (1, 6), "'INPUT'; expected PLACEHOLDER"),
        ("a = PLACEHOLDER [2]\nb(i) = c[i]", (2, 8), "'c'; expected a stage above"),
        ("a = PLACEHOLDER [2]\nb(i) = a[i, i]", (2, 8), "expected 1 indices of a, not 2"),
        ("a = PLACEHOLDER [2]\nb(i) = tir.gamma(a[i])", (2, 8), "expected one of the functions"),
        ("a = PLACEHOLDER [2]\nb(i) = tir.exp(a[i], a[i])", (2, 8), "expected exp of 1 values"),
        ("a = PLACEHOLDER [2]\nb(i) = (a[i] + a[k])", (2, 18), "'k'; expected one of the axes (i)"),
        ("a = PLACEHOLDER [2]\nb(i) *= a[i]", (2, 6), "'*'; expected one of = += max= min="),
        ("a = PLACEHOLDER [2]\nb(i) = (a[i]", (2, 13), "the end of the line; expected ')'"),
        ("a = PLACEHOLDER [2]\nb(i) = a[i] a", (2, 13), "expected the end of the line"),
        ("a = PLACEHOLDER [2]\nb(i) = a[i] ? 1", (2, 13), "can't read '? 1'"),
        ("a = PLACEHOLDER [2]\nb(i) = float32(a[i], 1)", (2, 8), "float32 of one value, not of 2"),
    ],
)
def test_what_cant_be_read(text, place, message):
    with pytest.raises(DagError) as error:
        parse_dag(text)
    assert (error.value.line, error.value.column) == place
    assert message in error.value.reason
    assert str(error.value).startswith(f"compute DAG: line {place[0]}, column {place[1]}: ")


def test_a_dag_computes_something():
    with pytest.raises(DagError, match="no stage computes anything"):
        parse_dag("a = PLACEHOLDER [2]")


def test_a_stage_that_a_later_one_of_its_name_hides_is_refused():
    with pytest.raises(DagError, match="nothing reads the first of the stages named 't'"):
        parse_dag("a = PLACEHOLDER [4]\nt(i) = (a[i] + 1f)\nt(i) = (a[i]*2f)")


def test_every_task_has_the_stages_that_its_text_has_lines():
    for task in load("tasks"):
        lines = [line for line in task["dag"].splitlines() if line.strip()]
        stages = parse_dag(task["dag"]).stages
        assert [s.label for s in stages] == [line.split("(")[0].split(" ")[0] for line in lines]
