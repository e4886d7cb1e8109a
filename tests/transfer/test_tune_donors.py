"""Donors by folder, and which of them count."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from tests.schedules.kernels import HOST
from tests.transfer.programs import conv, matmul_layer, program, record
from tvm_ext.errors import TuningError
from tvm_ext.transfer.tune_donors import donor_records, kernel_counts, read_donors
from tvm_ext.transfer.tune_store import TuningStore

CONV, OTHER = record(conv(4, 8, 6, 3), 2e-6), record(conv(4, 8, 7, 3), 5e-6)
PRODUCT = record(program(matmul_layer(4, 5, 6)), 1e-6)
CLASS = ("nn.conv2d", "add", "nn.relu")


def test_folders_and_mappings(tmp_path: Path) -> None:
    with TuningStore(tmp_path) as store:
        store.add(CONV.function, CONV.trace, CONV.seconds, HOST)
    for given in ([tmp_path], tmp_path):
        ((name, records),) = read_donors(given).items()
        assert name == str(tmp_path)
        assert [(r.workload, r.trace, r.seconds) for r in records] == [
            (CONV.workload, CONV.trace, CONV.seconds)
        ]
    assert read_donors({"a": iter([CONV])}) == {"a": [CONV]}
    with pytest.raises(TuningError, match=r"has no database_workload\.json"):
        read_donors([tmp_path / "none"])


def test_counts_are_of_kernels_that_worked() -> None:
    slower = replace(CONV, trace="slower")
    failed = replace(PRODUCT, seconds=math.inf)
    assert kernel_counts([CONV, slower, OTHER, failed]) == {CLASS: 2}


def test_the_best_donor_or_all() -> None:
    donors = {"products": [PRODUCT], "convolutions": [CONV, OTHER], "one": [OTHER]}
    shares = {CLASS: 0.9, ("matmul",): 0.1}
    assert donor_records(donors, shares, 1) == [CONV, OTHER]
    assert donor_records(donors, shares, 2) == [CONV, OTHER, OTHER]
    assert len(donor_records(donors, shares, None)) == 4
