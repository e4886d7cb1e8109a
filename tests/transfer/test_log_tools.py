"""Logs made of logs: against lists made in plain Python."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transfer.log_lines_of import (
    CUDA,
    DATA,
    HARDWARE,
    KEY,
    LLVM,
    STEPS,
    ansor,
    database,
    write,
)
from tvm_ext.errors import LogError, OptionError
from tvm_ext.transfer import (
    RecordFilter,
    best_records,
    filter_logs,
    load_module,
    merge_logs,
    read_log,
    split_logs,
)

OTHER = KEY.replace("[4, 8]", "[6, 8]")
OTHER_STEPS = [["SP", 2, 0, 4, [4], 1]]


def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def test_best(tmp_path: Path) -> None:
    """Two of every workload and target, the fastest first; a schedule counts once."""
    twice = ansor([0.1, 0.5, 0.3]), ansor([0.2])
    second, third = ansor([0.25], steps=OTHER_STEPS), ansor([0.26], steps=[])
    cuda, other = ansor([9.0], target=CUDA), ansor([8.0], key=OTHER)
    failed = ansor([1e10], key=OTHER, error=4)
    path = write(tmp_path / "log", third, twice[0], failed, cuda, second, twice[1], b"x\n", other)
    output = tmp_path / "best.json"
    outcome = best_records([path], output, top=2)
    assert lines_of(output) == [twice[1], second, cuda, other]
    assert (outcome.read, outcome.written, outcome.files) == (7, 4, 1)
    assert list(outcome.skipped.reasons) == ["not JSON"]
    best_records([path], output)
    assert lines_of(output) == [twice[1], cuda, other]


def test_best_finds_what_a_sort_finds(tmp_path: Path) -> None:
    seed = random.Random(3)
    made = [
        (key, number, seed.uniform(0.1, 0.9))
        for key in (KEY, OTHER) for number in range(12) for _ in range(3)
    ]  # fmt: skip
    seed.shuffle(made)
    path = write(
        tmp_path / "log", *(ansor([t], key=k, steps=[["CI", n]]) for k, n, t in made)
    )  # fmt: skip
    best_records([path], tmp_path / "best", top=5)
    times = [json.loads(line)["r"][0][0] for line in lines_of(tmp_path / "best")]
    first, second = dict.fromkeys(key for key, _, _ in made)
    least = {(k, n): min(t for kk, nn, t in made if (kk, nn) == (k, n)) for k, n, _ in made}
    assert times == [
        time
        for key in (first, second)
        for time in sorted(t for (k, _), t in least.items() if k == key)[:5]
    ]


@pytest.mark.parametrize(
    ("kept", "dropped"),
    [
        (ansor([0.9]), ansor([1e10], error=1)),
        (ansor([0.9, 0.8]), ansor([0.1])),
        (ansor([0.1, 0.9, 0.2]), ansor([0.3, 0.3, 0.3])),
        (ansor([0.1]), ansor([0.2], version="v0.5")),
    ],
)
def test_which_of_two_is_kept(tmp_path: Path, kept: bytes, dropped: bytes) -> None:
    first, second = write(tmp_path / "a", kept), write(tmp_path / "b", dropped)
    for paths in ((first, second), (second, first)):
        outcome = merge_logs(paths, tmp_path / "merged")
        assert lines_of(tmp_path / "merged") == [kept]
        assert (outcome.read, outcome.written) == (2, 1)


@pytest.mark.parametrize(
    "other",
    [
        {"key": OTHER}, {"target": CUDA}, {"steps": OTHER_STEPS}, {"steps": [*STEPS, ["CI", 1]]},
        {"hardware": [4, *HARDWARE[1:]]},
    ],
)  # fmt: skip
def test_what_is_no_double(tmp_path: Path, other: dict[str, Any]) -> None:
    path = write(tmp_path / "log", ansor(), ansor(**other), ansor())
    merge_logs([path], tmp_path / "merged")
    assert lines_of(tmp_path / "merged") == [ansor(), ansor(**other)]


def test_lines_stay_byte_for_byte(tmp_path: Path) -> None:
    """Blanks, line ends and the order of keys are what they were; comments are left out."""
    odd = b' {"v" : "v0.6", ' + ansor()[1:-1].replace(b', "v": "v0.6"', b"") + b" \r\n"
    path = write(
        tmp_path / "log", b"# comment\n", odd, DATA.joinpath("ansor_versions.json").read_bytes()
    )
    expected = [odd, *(line for line in lines_of(path) if line.startswith(b'{"i"'))]
    for make in MAKERS:
        make(path, tmp_path / "out.json")
        assert sorted(lines_of(tmp_path / "out.json")) == sorted(expected)


MAKERS: list[Callable[[Path, Path], object]] = [
    lambda path, output: merge_logs([path], output),
    lambda path, output: filter_logs([path], output, RecordFilter()),
    lambda path, output: (
        split_logs([path], output.with_suffix(".parts"), "target"),
        output.write_bytes(
            b"".join(part.read_bytes() for part in output.with_suffix(".parts").iterdir())
        ),
    ),
]


def test_gzip_output(tmp_path: Path) -> None:
    path = write(tmp_path / "log", ansor(), ansor(key=OTHER).strip())
    for name in ("a.json.gz", "b.json.gz"):
        merge_logs([path], tmp_path / name)
    assert gzip.decompress((tmp_path / "a.json.gz").read_bytes()) == ansor() + ansor(key=OTHER)
    assert (tmp_path / "a.json.gz").read_bytes() == (tmp_path / "b.json.gz").read_bytes()


def test_into_its_own_input(tmp_path: Path) -> None:
    path = write(tmp_path / "log", ansor(), ansor(), ansor(key=OTHER))
    merge_logs([path], path)
    assert lines_of(path) == [ansor(), ansor(key=OTHER)]


@pytest.mark.parametrize(
    ("keep", "numbers"),
    [
        (RecordFilter(), [0, 1, 2, 3]),
        (RecordFilter(target="avx512"), [0, 2, 3]),
        (RecordFilter(device="gpu"), [1]),
        (RecordFilter(workload="[6,8]"), [2]),
        (RecordFilter(max_seconds=0.4), [0, 1]),
        (RecordFilter(max_seconds=0.3), [0]),
        (RecordFilter(valid=True), [0, 1, 2]),
        (RecordFilter(valid=True, device="cpu", workload="0123", max_seconds=0.5), [0, 2]),
    ],
)
def test_filter(tmp_path: Path, keep: RecordFilter, numbers: list[int]) -> None:
    lines = [
        ansor([0.2, 0.3, 0.9]), ansor([0.4], target=CUDA), ansor([0.5], key=OTHER),
        ansor([1e10], error=2),
    ]  # fmt: skip
    outcome = filter_logs([write(tmp_path / "log", *lines)], tmp_path / "out", keep)
    assert lines_of(tmp_path / "out") == [lines[n] for n in numbers]
    assert (outcome.read, outcome.written) == (4, len(numbers))


def test_split(tmp_path: Path) -> None:
    lines = [ansor(), ansor(target=CUDA), ansor(), ansor(key=OTHER)]
    path = write(tmp_path / "log", *lines)
    (tmp_path / "targets").mkdir()
    outcome = split_logs([path], tmp_path / "targets", "target")
    assert (outcome.written, outcome.files) == (4, 2)
    parts = {part.name: lines_of(part) for part in (tmp_path / "targets").iterdir()}
    assert sorted(name[:-14] for name in parts) == [
        "cuda_-keys=cuda_gpu_-arch=sm_86", "llvm_-keys=cpu_-mcpu=skylake-avx512",
    ]  # fmt: skip
    assert sorted(parts.values()) == sorted([[lines[0], lines[2], lines[3]], [lines[1]]])
    outcome = split_logs([path], tmp_path / "workloads", "workload")
    assert (outcome.written, outcome.files) == (4, 2)


def test_nothing_is_left_when_it_fails(tmp_path: Path) -> None:
    path = write(tmp_path / "log", ansor())
    (tmp_path / "full").mkdir()
    write(tmp_path / "full" / "x", b"x")
    database(tmp_path / "db", [4])
    before = sorted(tmp_path.iterdir())
    gone = tmp_path / "gone"
    with pytest.raises(LogError, match="gone: No such file"):
        merge_logs([path, gone], tmp_path / "out")
    with pytest.raises(LogError, match="gone: No such file"):
        split_logs([path, gone], tmp_path / "out", "target")
    with pytest.raises(LogError, match="no record to write"):
        filter_logs([path], tmp_path / "out", RecordFilter(device="gpu"))
    with pytest.raises(LogError, match="a record of metaschedule behind records of ansor"):
        merge_logs([path, tmp_path / "db"], tmp_path / "out")
    with pytest.raises(LogError, match="full: it is there; allowed: a new or an empty directory"):
        split_logs([path], tmp_path / "full", "target")
    with pytest.raises(LogError, match="can't write"):
        merge_logs([tmp_path / "db"], tmp_path / "full")
    with pytest.raises(LogError, match="can't write"):
        merge_logs([path], tmp_path / "full")
    with pytest.raises(LogError, match="can't write"):
        merge_logs([path], gone / "out")
    with pytest.raises(LogError, match="can't write"):
        split_logs([path], gone / "out", "target")
    assert sorted(tmp_path.iterdir()) == before
    assert [p.name for p in (tmp_path / "full").iterdir()] == ["x"]


def test_options(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="top 0; allowed: 1 and above"):
        best_records([], tmp_path / "out", top=0)
    with pytest.raises(OptionError, match="by 'device'; allowed: target, workload"):
        split_logs([], tmp_path / "out", "device")
    with pytest.raises(OptionError, match="device 'fpga'; allowed: cpu, gpu, other"):
        RecordFilter(device="fpga")
    for seconds in (0.0, -1.0, float("nan")):
        with pytest.raises(OptionError, match=r"max_seconds .* allowed: above 0"):
            RecordFilter(max_seconds=seconds)


def test_databases(tmp_path: Path) -> None:
    """Workloads are counted anew; TVM reads what is written, modules included."""
    from tvm.s_tir.meta_schedule.database import JSONDatabase

    database(tmp_path / "a", [4, 6])
    database(tmp_path / "b", [6, 8])
    merge_logs([tmp_path / "a", tmp_path / "b"], tmp_path / "both")
    merged = list(read_log(tmp_path / "both"))
    rows = [r.workload.arguments[0][1][0] for r in merged]
    assert rows == [4] * 3 + [6] * 3 + [8] * 3
    bodies = [line[2:] for name in "ab" for line in records_file(tmp_path / name)]
    written = records_file(tmp_path / "both")
    assert [line[2:] for line in written] == bodies[:6] + bodies[9:]
    assert [line[:3] for line in written] == [b"[%d," % n for n in (0, 0, 0, 1, 1, 1, 2, 2, 2)]
    stored = JSONDatabase(work_dir=str(tmp_path / "both"))
    assert len(stored) == 9
    for record in merged:
        assert stored.has_workload(load_module(record.workload))
    filter_logs([tmp_path / "both"], tmp_path / "last", RecordFilter(workload="[8,8]"))
    assert [line[2:] for line in records_file(tmp_path / "last")] == bodies[9:]
    assert len(JSONDatabase(work_dir=str(tmp_path / "last"))) == 3
    best_records([tmp_path / "both"], tmp_path / "best")
    assert [r.median for r in read_log(tmp_path / "best")] == pytest.approx([4e-6] * 3)
    outcome = split_logs([tmp_path / "both"], tmp_path / "split", "workload")
    assert outcome.files == 3
    merge_logs((tmp_path / "split").iterdir(), tmp_path / "again")
    assert {line[2:] for line in records_file(tmp_path / "again")} == {line[2:] for line in written}


def records_file(directory: Path) -> list[bytes]:
    return lines_of(directory / "database_tuning_record.json")


_lines = st.builds(
    ansor,
    seconds=st.lists(st.sampled_from([0.1, 0.2, 0.3]), min_size=1, max_size=3),
    key=st.sampled_from([KEY, OTHER, '["named", 4, "float32"]']),
    target=st.sampled_from([LLVM, CUDA]),
    steps=st.sampled_from([STEPS, OTHER_STEPS]),
    error=st.sampled_from([0, 0, 0, 4]),
    version=st.sampled_from(["v0.5", "v0.6"]),
)
_logs = st.lists(_lines, min_size=1, max_size=12)


def merged(*logs: list[bytes]) -> list[bytes]:
    with TemporaryDirectory() as name:
        directory = Path(name)
        paths = [write(directory / f"{n}", *lines) for n, lines in enumerate(logs)]
        merge_logs(paths, directory / "out")
        return lines_of(directory / "out")


@settings(max_examples=60, deadline=None, derandomize=True)
@given(_logs, _logs, _logs)
def test_merging_is_idempotent_commutative_and_associative(
    a: list[bytes], b: list[bytes], c: list[bytes]
) -> None:
    both = merged(a, b)
    assert merged(both) == both == merged(both, both)
    assert sorted(both) == sorted(merged(b, a)) == sorted(merged(a + b))
    assert sorted(merged(both, a)) == sorted(both)
    assert sorted(merged(both, c)) == sorted(merged(a, merged(b, c)))
    assert set(both) <= {*a, *b}


@settings(max_examples=60, deadline=None, derandomize=True)
@given(_logs, st.sampled_from(["target", "workload"]))
def test_split_then_merge(lines: list[bytes], by: str) -> None:
    with TemporaryDirectory() as name:
        directory = Path(name)
        split_logs([write(directory / "log", *lines)], directory / "parts", by)
        parts = sorted((directory / "parts").iterdir())
        assert sorted(line for part in parts for line in lines_of(part)) == sorted(lines)
        merge_logs(parts, directory / "out")
        assert sorted(lines_of(directory / "out")) == sorted(merged(lines))
