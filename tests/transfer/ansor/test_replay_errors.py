"""Steps that don't fit: refused with the step and the reason."""

import pytest

from tvm_ext.transfer.ansor import ComputeDag, ReplayError, replay

TEXT = """
a = PLACEHOLDER [8, 16]
b(i, j) = (a[i, j] + 1f)
c(i) += b[i, k]
d(i) = (c[i]*2f)
"""


@pytest.fixture(scope="module")
def dag():
    return ComputeDag.parse(TEXT, [[8, 16], [8]])


@pytest.mark.parametrize(
    ("steps", "step", "message"),
    [
        ([["CI", 4]], 0, "there is no stage 4; allowed: 0 to 3"),
        ([["CI", 0]], 0, "stage 0, a, is a placeholder"),
        ([["CI", 1], ["SP", 3, 1, 8, [2], 1]], 1, "d has 1 iterators, none is 1"),
        ([["SP", 3, 0, 9, [3], 1]], 0, "i0 of d is 8 long, in the record 9"),
        (
            [["FU", 1, [0, 1]], ["SP", 1, 0, 64, [2], 1]],
            1,
            "i0@i1 of b is 128 long, in the record 64",
        ),
        ([["RE", 1, [0]]], 0, r"\[0\] is no order of 2 iterators"),
        ([["RE", 1, [0, 0]]], 0, r"\[0, 0\] is no order of 2 iterators"),
        ([["FU", 1, [1, 0]]], 0, r"iterators \[1, 0\] don't follow each other"),
        ([["FSP", 3, 0, 0, 2]], 0, "step 0 is no split before it"),
        ([["CI", 1], ["FSP", 3, 0, 0, 2]], 1, "step 0 is no split before it"),
        ([["SP", 2, 0, 8, [2], 1], ["FSP", 3, 0, 0, 3]], 1, "3 lengths of a split that has 1"),
        ([["SP", 2, 0, 8, [2], 1], ["FFSP", 3, 0, [0], 1, 1]], 1, "has no level 1"),
        ([["CA", 1, 1, 0]], 0, "b can't be computed inside b"),
        ([["CA", 1, 2, 5]], 0, "c has 2 iterators, none is 5"),
        ([["CHR", 0, "local", [2]]], 0, "c doesn't read a"),
        ([["CHR", 0, "local", [0]]], 0, r"stages \[0\] read nothing"),
        ([["SP", 2, 0, 8, [2], 1], ["CHW", 2, "local"]], 1, "the loops of c have been changed"),
        ([["CA", 1, 2, 0], ["CHW", 2, "local"]], 1, "b is computed inside c"),
        ([["RF", 2, 0, 1]], 0, "i0 of c isn't reduced"),
        ([["RF", 2, 1, 0]], 0, "the new axis is to be axis 0; allowed: the last, 1"),
        ([["CA", 2, 3, 0], ["RF", 2, 1, 1]], 1, "c isn't computed by itself"),
        ([["SA", 2, 1, 32, 16]], 0, "k of c is no axis of its output"),
        ([["AN", 3, 0, 11]], 0, "the step names no instruction to use"),
    ],
)
def test_a_step_that_doesnt_fit(dag, steps, step, message):
    with pytest.raises(ReplayError, match=message) as error:
        replay(dag, steps)
    assert error.value.step == step


@pytest.mark.parametrize(
    ("steps", "step", "kind", "message"),
    [
        # The output can't be inlined, for nothing reads it.
        ([["CI", 1], ["CI", 3]], 1, "CI", "output block"),
        # A stage computed inside one that comes before it.
        ([["CA", 3, 2, 0]], 0, "CA", "c isn't computed after d"),
        # Inside another than its reader.
        ([["CA", 1, 3, 0]], 0, "CA", "all the consumer"),
        # Inside one that is inlined.
        ([["CI", 2], ["CA", 1, 2, 0]], 0, "CI", "has init statement"),
        # A reduction can't be taken apart when one of its loops is around an output's.
        ([["AN", 2, 1, 3]], 0, "AN", "data parallel"),
    ],
)
def test_what_tensorir_refuses_has_the_step(dag, steps, step, kind, message):
    with pytest.raises(ReplayError) as error:
        replay(dag, steps)
    assert (error.value.step, error.value.kind) == (step, kind)
    assert message in error.value.reason


def test_a_failed_replay_leaves_the_dag_as_it_was(dag):
    before = dag.function.script()
    with pytest.raises(ReplayError):
        replay(dag, [["SP", 3, 0, 8, [2], 1], ["CI", 1], ["CI", 3]])
    assert dag.function.script() == before
    assert [str(line) for line in replay(dag, [["CI", 1]]).structure] == [
        "for 8", "  for 16", "    stage c", "for 8", "  stage d",
    ]  # fmt: skip
