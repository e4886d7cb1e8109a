"""Loop structures of TensorIR and of Ansor's print in one form."""

import pytest
from tvm.script import tirx as T

from tvm_ext.transfer.ansor.errors import DagError
from tvm_ext.transfer.ansor.loop_structure import Line, loop_structure, parse_state

STATE = """Placeholder: p0, p1
parallel n.0@oh.0@ (0,32)
  conv auto_unroll: 512
  for ow.0 (oh_outer % 224 // 8 * 8 + oh_inner * 2,7)
    vectorize oc.3 (0,8)
      conv = ...
  blockIdx.x i (0,4)
    pool.rf = ...
"""


def test_ansors_print():
    assert parse_state(STATE) == (
        Line(0, "parallel", 32),
        Line(1, "auto_unroll", 512),
        Line(1, "for", 7),
        Line(2, "vectorize", 8),
        Line(3, "stage", "conv"),
        Line(1, "blockIdx.x", 4),
        Line(2, "stage", "pool.rf"),
    )


@pytest.mark.parametrize("line", ["for i", "conv = 1", "  let x"])
def test_a_line_that_isnt_ansors(line):
    with pytest.raises(DagError, match="no line of a state") as error:
        parse_state(f"Placeholder: p0\n{line}\n")
    assert error.value.line == 2


@T.prim_func(s_tir=True)
def doubled(a: T.Buffer((4, 6), "float32"), b: T.Buffer((4, 6), "float32")):
    for i in T.parallel(4):
        for j in T.serial(1):
            for k in T.serial(3, annotations={"pragma_auto_unroll_max_step": 16}):
                for m in T.vectorized(2):
                    with T.sblock("twice"):
                        vi = T.axis.spatial(4, i + j)
                        vk = T.axis.spatial(6, k * 2 + m)
                        b[vi, vk] = a[vi, vk] * T.float32(2)


def test_tensorir_without_loops_of_one_step():
    structure = loop_structure(doubled, {"twice": "b"})
    assert [str(line) for line in structure] == [
        "parallel 4",
        "  auto_unroll 16",
        "  for 3",
        "    vectorize 2",
        "      stage b",
    ]
