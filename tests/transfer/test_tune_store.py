"""Records in a folder: MetaSchedule's format, appended safely."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import tvm
from tvm.s_tir.meta_schedule.database import JSONDatabase

from tests.schedules.kernels import HOST
from tests.transfer.programs import conv, record, sketches
from tvm_ext.errors import TuningError
from tvm_ext.schedules.tuned import trace_text
from tvm_ext.transfer.tune_store import (
    RECORDS,
    WORKLOADS,
    TuningStore,
    memory_database,
    workload_key,
)

CONV, SMALL = conv(8, 16), conv(4, 4, 5, 1)
TRACES = [trace_text(s.trace) for s in sketches(CONV)]
FUNCTION = CONV.workload.function


def filled(folder: Path) -> None:
    with TuningStore(folder) as store:
        for trace, seconds in zip(TRACES, (3e-5, 2e-5, math.inf), strict=True):
            store.add(FUNCTION, trace, seconds, HOST)
        store.add(SMALL.workload.function, trace_text(sketches(SMALL)[0].trace), 1e-6, HOST)


def test_records_come_back_fastest_first(tmp_path: Path) -> None:
    filled(tmp_path)
    with TuningStore(tmp_path) as store:
        assert len(store) == 4
        found = store.of(workload_key(FUNCTION))
        assert [r.seconds for r in found] == [2e-5, 3e-5, math.inf]
        assert [r.failed for r in found] == [False, False, True]
        assert [r.trace for r in found] == [TRACES[1], TRACES[0], TRACES[2]]
        assert found[0].ops == ("nn.conv2d", "add", "nn.relu")
        assert store.find(workload_key(FUNCTION), "[[],[]]") is None


def test_metaschedule_reads_the_files(tmp_path: Path) -> None:
    filled(tmp_path)
    database = JSONDatabase(str(tmp_path / WORKLOADS), str(tmp_path / RECORDS))
    assert len(database) == 4
    workload = database.commit_workload(tvm.IRModule({"main": FUNCTION}))
    # The failed one isn't among the best.
    times = [float(r.run_secs[0]) for r in database.get_top_k(workload, 5)]
    assert times == pytest.approx([2e-5, 3e-5])


def test_a_candidate_is_kept_once(tmp_path: Path) -> None:
    filled(tmp_path)
    before = (tmp_path / RECORDS).read_text()
    with TuningStore(tmp_path) as store:
        assert store.add(FUNCTION, TRACES[0], 1.0, HOST).seconds == 3e-5
        assert len(store) == 4
    assert (tmp_path / RECORDS).read_text() == before


@pytest.mark.parametrize("name", [WORKLOADS, RECORDS])
def test_a_torn_last_line_is_cut_off(tmp_path: Path, name: str) -> None:
    filled(tmp_path)
    whole = (tmp_path / name).read_bytes()
    with (tmp_path / name).open("ab") as file:
        file.write(whole.splitlines()[-1][:40])
    with TuningStore(tmp_path) as store:
        assert len(store) == 4
    assert (tmp_path / name).read_bytes() == whole


@pytest.mark.parametrize(
    ("name", "line", "message"),
    [
        (RECORDS, "{", r"database_tuning_record\.json, line 2: not JSON"),
        (RECORDS, "[9, [[[], []], [1.0], {}, []]]", "line 2: not a tuning record"),
        (RECORDS, "[0]", "line 2: not a tuning record"),
        (WORKLOADS, '["1", "AAAA"]', r"database_workload\.json, line 2: not a workload"),
    ],
)
def test_other_lines_are_named(tmp_path: Path, name: str, line: str, message: str) -> None:
    filled(tmp_path)
    lines = (tmp_path / name).read_text().splitlines()
    lines[1] = line
    (tmp_path / name).write_text("\n".join(lines) + "\n")
    with pytest.raises(TuningError, match=message):
        TuningStore(tmp_path)
    # The folder is free again.
    (tmp_path / name).write_text("")
    (tmp_path / RECORDS).write_text("")
    with TuningStore(tmp_path) as store:
        assert len(store) == 0


def test_one_run_at_a_time(tmp_path: Path) -> None:
    with TuningStore(tmp_path), pytest.raises(TuningError, match="another run is tuning into"):
        TuningStore(tmp_path)
    with TuningStore(tmp_path) as store:
        assert store.scratch.is_dir()
    assert not store.scratch.exists()


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TuningError, match="can't use "):
        TuningStore(tmp_path / "file")


def test_times_of_several_runs_give_their_median(tmp_path: Path) -> None:
    filled(tmp_path)
    lines = [json.loads(line) for line in (tmp_path / RECORDS).read_text().splitlines()]
    lines[0][1][1] = [5e-5, 1e-5, 4e-5]
    (tmp_path / RECORDS).write_text("".join(json.dumps(line) + "\n" for line in lines))
    with TuningStore(tmp_path) as store:
        assert sorted(r.seconds for r in store.of(workload_key(FUNCTION)))[1] == 4e-5


def test_memory_databases_hold_what_did_not_fail() -> None:
    good, bad = record(CONV, 1e-5), record(CONV, math.inf, 0)
    database = memory_database([good, bad], HOST)
    (kept,) = database.get_all_tuning_records()
    assert float(kept.run_secs[0]) == pytest.approx(1e-5)


def test_names_are_short_and_of_the_content() -> None:
    first, second = record(CONV, 1e-5, 0), record(CONV, 1e-5, 1)
    assert first.name == record(CONV, 7.0, 0).name != second.name
    assert len(first.name) == 12
