"""Records replayed against the loop structures that Ansor printed of them."""

from collections import Counter

import pytest

from tests.transfer.ansor.fixtures import library, load, workload
from tvm_ext.transfer.ansor import replay
from tvm_ext.transfer.ansor.loop_structure import parse_state

RECORDS = load("golden")


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: f"{r['network']}-{r['line']}")
def test_the_structure_is_ansors(record):
    replayed = replay(library().find(workload(record)), record["steps"])
    assert replayed.structure == parse_state(record["state"])
    assert replayed.imperfect_splits == ()


def test_the_records_have_these_steps():
    kinds = Counter(step[0] for record in RECORDS for step in record["steps"])
    assert kinds.keys() == {"SP", "FSP", "RE", "FU", "AN", "PR", "CA", "CI", "CR", "RF"}


def test_another_factor_is_another_structure():
    record = RECORDS[0]
    steps = [list(step) for step in record["steps"]]
    split = next(s for s in steps if s[0] == "SP" and max(s[4]) > 1)
    split[4] = [1] * len(split[4])
    replayed = replay(library().find(workload(record)), steps)
    assert replayed.structure != parse_state(record["state"])
