"""Files of all kinds: damaged, packed, piped, too large for the memory."""

from __future__ import annotations

import gzip
import io
import os
import sys
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import BinaryIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transfer.log_lines_of import DATA, STEPS, ansor, write
from tvm_ext.errors import LogError
from tvm_ext.transfer import Record, Skipped, Source, log_lines, read_log
from tvm_ext.transfer.log_files import log_paths

VERSIONS = DATA / "ansor_versions.json"


def reasons(path: Path) -> list[tuple[int, str]]:
    """Every entry's line and defect."""
    return [
        (entry.source.line, entry.reason if isinstance(entry, Skipped) else "")
        for entry in read_log(path)
    ]


def records_of(path: Path) -> list[Record]:
    return [entry for entry in read_log(path) if isinstance(entry, Record)]


def test_every_line_is_a_record_or_is_skipped(tmp_path: Path) -> None:
    path = write(
        tmp_path / "log.json",
        b"# comment\n", b"\n", b"   \r\n", ansor(), ansor()[:50] + b"\n", ansor([0.0]),
        b"  # another\n", ansor()[:50] + ansor(), b"hello\n", ansor().strip(),
    )  # fmt: skip
    assert reasons(path) == [
        (4, ""), (5, "truncated line"), (6, "bad time"), (8, "several records in one line"),
        (9, "not JSON"), (10, ""),
    ]  # fmt: skip
    first = next(entry for entry in read_log(path) if isinstance(entry, Skipped))
    assert str(first) == f"{path}, line 5: truncated line: 50 characters"


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.data())
def test_damage_of_any_kind(data: st.DataObject) -> None:
    """A line more or less ends as a record or as skipped; the last, sound one is always read."""
    text = bytearray(b"\n".join(VERSIONS.read_bytes().splitlines()[3:6]))
    for _ in range(data.draw(st.integers(1, 6))):
        start = data.draw(st.integers(0, len(text) - 1))
        size = data.draw(st.sampled_from([0, 1, 3, 200]))
        parts = [b"", b"\n", b"[", b"]", b'"', b"0", b"-", b"e9", b"null", b"NaN", b"\xff", b"\\u"]
        text[start : start + size] = data.draw(st.sampled_from(parts))
    with TemporaryDirectory() as name:
        path = write(Path(name) / "log", bytes(text), b"\n", ansor())
        entries = list(read_log(path))
    lines = [line for line in bytes(text).split(b"\n") if line.strip() and line[:1] != b"#"]
    assert len(entries) == len(lines) + 1
    assert isinstance(entries[-1], Record)


def test_nested_deep(tmp_path: Path) -> None:
    """Up to, and beyond, what Python can read or show."""

    def nested(depth: int) -> bytes:
        return b"[" * depth + b"]" * depth

    sound = b'[0,[[[],[]],[1.0],{"kind":"llvm"},[]]]\n'
    trace = sound.replace(b"[[],[]]", b'[[["Annotate",%b,[],[]]],[]]')
    lines = [trace % nested(70)]
    for depth in (*range(70, 1000, 5), 100_000):
        lines += [sound.replace(b"1.0", nested(depth)), sound.replace(b'"llvm"', nested(depth))]
        lines.append(sound.replace(b'"llvm"', b'"llvm","x":' + nested(depth)))
    write(tmp_path / "database_workload.json", b'["1", "AAAA"]\n')
    path = write(tmp_path / "database_tuning_record.json", sound, *lines, trace % nested(60))
    found = [reason for _, reason in reasons(path)]
    assert len(found) == len(lines) + 2
    assert (found[0], found[1], found[-1]) == ("", "nested too deep", "")
    assert set(found) == {"", "nested too deep", "bad time", "bad target"}
    # Options of a target may be anything that can be shown.
    assert all(found[n] for n in range(2, len(found) - 1) if n % 3 != 1)


def test_line_ends_and_byte_order_mark(tmp_path: Path) -> None:
    line = ansor().strip()
    path = write(tmp_path / "log.json", b"\xef\xbb\xbf", line, b"\r\n", line)
    assert reasons(path) == [(1, ""), (2, "")]


def test_garbage_in_front(tmp_path: Path) -> None:
    path = write(tmp_path / "log.json", b"warning: x\n" * 500, ansor())
    assert reasons(path)[-1] == (501, "")


@pytest.mark.parametrize("cut", range(1, len(ansor()), 7))
def test_a_log_whose_head_is_cut_off(tmp_path: Path, cut: int) -> None:
    """As a rotated log's: the rest of a line may begin with anything."""
    path = write(tmp_path / "log.json", ansor()[cut:], ansor())
    assert reasons(path)[-1] == (2, "")


@pytest.mark.parametrize("line", [b"{}", b'{"a": 1}', b"[", b'["1", "AAAA"]', b"[1, 2]"])
def test_json_of_another_kind_in_front(tmp_path: Path, line: bytes) -> None:
    record = b'[0,[[[],[]],[1.0],{"kind":"llvm"},[]]]\n'
    write(tmp_path / "database_workload.json", b'["1", "AAAA"]\n')
    path = write(tmp_path / "database_tuning_record.json", line, b"\n", record)
    assert [reason == "" for _, reason in reasons(path)] == [False, True]
    path = write(tmp_path / "log.json", line, b"\n", ansor())
    assert [reason == "" for _, reason in reasons(path)] == [False, True]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "has no record"),
        (b"# nothing\n\n", "has no record"),
        (b"\x00\xff" * 500, "has no readable record; 1 lines were skipped, the first: .*line 1: "),
        (b"hello\nworld\n", "no readable record; 2 lines were skipped, the first: .*1: not JSON"),
        (b'{"input": [], "config": {}, "result": [], "version": 0.2}\n', "not an Ansor record"),
        (gzip.compress(b"", mtime=0), "has no record"),
        (b"\x1f\x8b", "damaged gzip file"),
        (b"\x1f\x8bhello, this is none", "damaged gzip file"),
    ],
)
def test_no_readable_record(tmp_path: Path, content: bytes, message: str) -> None:
    path = write(tmp_path / "log.json", content)
    with pytest.raises(LogError, match=message):
        list(read_log(path))


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(LogError, match=r"can't read .*gone\.json: No such file"):
        list(read_log(tmp_path / "gone.json"))
    with pytest.raises(LogError, match=r"can't read .*database_tuning_record\.json: No such file"):
        list(read_log(tmp_path))


def test_gzip_whatever_its_name(tmp_path: Path) -> None:
    path = write(tmp_path / "log.json", gzip.compress(VERSIONS.read_bytes()))
    packed, plain = records_of(path), records_of(VERSIONS)
    assert [replace(r, source=Source(str(VERSIONS), r.source.line)) for r in packed] == plain


def test_a_gzip_file_that_is_cut_off(tmp_path: Path) -> None:
    packed = gzip.compress(b"".join(ansor([n + 1.0]) for n in range(20_000)))
    entries = list(read_log(write(tmp_path / "log.json.gz", packed[: len(packed) // 2])))
    assert len(entries) > 1000
    assert all(isinstance(entry, Record) for entry in entries[:-1])
    assert isinstance(entries[-1], Skipped)
    assert entries[-1].reason == "damaged gzip file"


def test_a_line_that_never_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = len(ansor())
    monkeypatch.setattr(log_lines.LogLines.__init__, "__defaults__", (None, limit))
    long = ansor(steps=STEPS * 5000)
    path = write(tmp_path / "log.json", ansor(), long, ansor(), long.strip())
    assert reasons(path) == [(1, ""), (2, "line too long"), (3, ""), (4, "line too long")]
    skipped = [entry for entry in read_log(path) if isinstance(entry, Skipped)]
    assert skipped[0].detail == f"{len(long)} bytes; allowed: {limit}"


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = SimpleNamespace(buffer=io.BytesIO(VERSIONS.read_bytes()))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert len(list(read_log("-"))) == 9
    assert not stdin.buffer.closed


def test_a_log_named_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "db").mkdir()
    names = ("a.json", "./a.json", "db", "db/database_workload.json", "-", "b.json", "-")
    assert log_paths(names) == ("a.json", "db/database_tuning_record.json", "-", "b.json")


def test_progress(tmp_path: Path) -> None:
    told: list[tuple[str, int]] = []
    path = write(tmp_path / "log.json", ansor() * 600)
    list(read_log(path, lambda name, done: told.append((name, done))))
    assert [name for name, _ in told] == [str(path)] * 3
    assert sorted(done for _, done in told) == [done for _, done in told]
    assert told[-1][1] == path.stat().st_size


@pytest.fixture
def piped(tmp_path: Path) -> Iterator[Callable[[Callable[[BinaryIO], None]], Path]]:
    """A pipe, and a thread that writes into it."""
    threads: list[threading.Thread] = []

    def start(fill: Callable[[BinaryIO], None]) -> Path:
        path = tmp_path / "pipe"
        os.mkfifo(path)

        def run() -> None:
            with open(path, "wb") as stream:
                fill(stream)

        threads.append(threading.Thread(target=run))
        threads[-1].start()
        return path

    yield start
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("packed", [False, True])
def test_constant_memory(piped: Callable[[Callable[[BinaryIO], None]], Path], packed: bool) -> None:
    """50 MB pass through a pipe; less than one of them is ever in memory."""
    line = ansor(steps=[["PR", 1, 0, "x" * 4000], *STEPS])
    batch = line * 100 + ansor([0.0])
    rounds = (50 << 20) // len(batch) + 1

    def fill(stream: BinaryIO) -> None:
        out = gzip.GzipFile(fileobj=stream, mode="wb", compresslevel=1) if packed else stream
        for _ in range(rounds):
            out.write(batch)
        if packed:
            out.close()

    path = piped(fill)
    tracemalloc.start()
    try:
        found = skipped = 0
        for entry in read_log(path):
            found += isinstance(entry, Record)
            skipped += isinstance(entry, Skipped)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (found, skipped) == (rounds * 100, rounds)
    assert peak < 1 << 20
