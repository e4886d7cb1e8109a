"""Donors by folder, and which of them count."""

from __future__ import annotations

import gzip
import math
from dataclasses import replace
from pathlib import Path

import pytest

from tests.schedules.kernels import HOST
from tests.transfer.ansor_logs import line, task, with_tasks
from tests.transfer.log_lines_of import KEY, write
from tests.transfer.programs import conv, matmul_layer, program, record
from tvm_ext.errors import TuningError
from tvm_ext.transfer import ansor_donors
from tvm_ext.transfer.bank import Bank, Provenance
from tvm_ext.transfer.tune_donors import donor_records, kernel_counts, load_donors, read_donors
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
    (tmp_path / "empty").mkdir()
    with pytest.raises(TuningError, match=r"has no database_workload\.json"):
        read_donors([tmp_path / "empty"])
    with pytest.raises(TuningError, match="none: no such file or folder; allowed: a tuning run's"):
        read_donors([tmp_path / "none"])


def test_banks_are_donors_by_their_sources(tmp_path: Path) -> None:
    bank = Bank("znver4")
    bank.add([CONV], Provenance("a, search", 1))
    bank.add([OTHER, PRODUCT], Provenance("b, search", 1))
    bank.save(tmp_path / "bank.jsonl.gz")
    found = sorted(load_donors([tmp_path / "bank.jsonl.gz"]), key=lambda donor: donor.name)
    assert [(d.name, len(d.records), d.kernels) for d in found] == [
        ("a, search", 1, 1), ("b, search", 2, 2),
    ]  # fmt: skip
    assert str(found[0]) == "a, search: 1 record of 1 kernel"
    # Named twice, it is one donor of each source still.
    assert len(load_donors([tmp_path / "bank.jsonl.gz"] * 2)) == 2


def test_logs_of_ansor_are_donors(tmp_path: Path) -> None:
    of = task("softmax")
    log = with_tasks(tmp_path / "log.json", [of], line(of), line(of, 1), line(of, key=KEY))
    packed = tmp_path / "log.json.gz"
    packed.write_bytes(gzip.compress(log.read_bytes()))
    for path in (log, packed, str(log)):
        (donor,) = load_donors([path])
        assert (donor.name, len(donor.records), donor.kernels) == (str(path), 2, 1)
        assert str(donor).splitlines()[1:] == [
            "  1 skipped: computation: no text is known for this hash with these shapes"
        ]
    assert read_donors([log]) == {str(log): list(load_donors([log])[0].records)}


def test_the_shipped_records_are_a_donor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ansor_donors, "shipped_records", lambda: (task("softmax"),))
    (donor,) = load_donors(["shipped"])
    assert (donor.name, len(donor.records), donor.kernels) == ("shipped", 3, 1)
    assert donor.skipped == {ansor_donors.SLOWER: len(task("softmax").records) - 3}


def test_donors_without_a_record_say_why(tmp_path: Path) -> None:
    of = task("softmax")
    unknown = write(tmp_path / "unknown.json", line(of, key=KEY))
    with pytest.raises(
        TuningError, match=r"no donor has a record .*unknown\.json: 1 x computation"
    ):
        read_donors([unknown])
    assert [d.records for d in load_donors([unknown])] == [()]
    # One that has some is enough.
    log = with_tasks(tmp_path / "log.json", [of], line(of))
    assert [len(records) for records in read_donors([unknown, log]).values()] == [0, 1]
    (tmp_path / "log.tasks.json").write_text("{}")
    with pytest.raises(
        TuningError, match=r"neither a bank nor a log of Ansor's: .*no list of objects"
    ):
        read_donors([log])
    with pytest.raises(
        TuningError, match=r"neither a bank nor a log of Ansor's: .*no readable record"
    ):
        read_donors([write(tmp_path / "text.txt", b"nothing\n")])
    truncated = tmp_path / "bank.gz"
    truncated.write_bytes(gzip.compress(b'{"schema": 1, "mcpu": "x"}\n' + bytes(9))[:-9])
    with pytest.raises(TuningError, match="can't read the bank"):
        read_donors([truncated])


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
