"""Raw steps to typed ones, and what is refused, with the step's index and the field."""

import pytest

from tvm_ext.transfer import ansor_step_types as ansor
from tvm_ext.transfer.ansor.errors import ReplayError
from tvm_ext.transfer.ansor.step_fields import parse_step, parse_steps


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (["SP", 3, 4, 56, [1, 2, 7], 1], ansor.Split(3, 4, 56, (1, 2, 7), True)),
        (("SP", 3, 4, 0, (8,), 0), ansor.Split(3, 4, 0, (8,), False)),
        (["FSP", 6, 3, 1, 2], ansor.FollowSplit(6, 3, 1, 2)),
        (["FFSP", 4, 0, [4, 3], 1, 1], ansor.FollowFusedSplit(4, 0, (4, 3), 1, True)),
        (["RE", 3, [1, 0]], ansor.Reorder(3, (1, 0))),
        (["FU", 6, [0, 1]], ansor.Fuse(6, (0, 1))),
        (["AN", 6, 0, 3], ansor.Annotate(6, 0, ansor.Annotation.PARALLEL)),
        (["PR", 3, 0, "auto_unroll_max_step$512"], ansor.Pragma(3, 0, 512)),
        (["CA", 3, 6, 9], ansor.ComputeAt(3, 6, 9)),
        (["CI", 5], ansor.ComputeInline(5)),
        (["CR", 1], ansor.ComputeRoot(1)),
        (["CHR", 1, "shared", [4]], ansor.CacheRead(1, "shared", (4,))),
        (["CHW", 3, "local"], ansor.CacheWrite(3, "local")),
        (["RF", 2, 3, 1], ansor.Rfactor(2, 3, 1)),
        (["SA", 2, 1, 32, 16], ansor.StorageAlign(2, 1, 32, 16)),
    ],
)
def test_every_kind(raw, expected):
    assert parse_step(0, raw) == expected


def test_the_kinds_are_ansors():
    kinds = "SP FSP FFSP RE FU AN PR CA CI CR CHR CHW RF SA"
    assert list(ansor.STEPS) == kinds.split()


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ([], "its kind is None; allowed: SP, FSP"),
        (["XX", 1], "its kind is 'XX'; allowed: SP, FSP"),
        (["CI"], "it has 0 fields, not 1"),
        (["CI", -1], "stage is -1; allowed: an integer from 0"),
        (["CI", True], "stage is True; allowed: an integer from 0"),
        (["SP", 3, 0, 8, [0], 1], r"lengths is \[0\]; allowed: a list of integers from 1"),
        (["SP", 3, 0, 8, [2], 2], "from_inside is 2; allowed: 0 or 1"),
        (["RE", 3, [0, -1]], r"order is \[0, -1\]; allowed: a list of integers from 0"),
        (["AN", 3, 0, 12], "annotation is 12; allowed: 0 to 11"),
        (["PR", 3, 0, "tensorize$1"], r"unroll is 'tensorize\$1'; allowed: auto_unroll_max_step"),
        (["PR", 3, 0, 16], "unroll is 16; allowed: auto_unroll_max_step"),
        (["CHW", 3, "warp"], "scope is 'warp'; allowed: global, shared or local"),
        (["FSP", 3, 0, 1, 0], "levels is 0; allowed: an integer from 1"),
    ],
)
def test_what_is_refused(raw, message):
    with pytest.raises(ReplayError, match=message) as error:
        parse_steps([["CI", 1], raw])
    assert error.value.step == 1
    assert str(error.value).startswith("step 1")
