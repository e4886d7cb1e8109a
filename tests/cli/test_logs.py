"""`tvm-ext logs`: what it prints and writes, and its errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.commands import fails, run_command
from tests.transfer.log_lines_of import CUDA, DATA, KEY, LLVM, ansor, database, write

COMMANDS = ("info", "best", "merge", "filter", "split")
OTHER = KEY.replace("[4, 8]", "[6, 8]")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    lines = (
        ansor([0.002]), ansor([0.001], steps=[]), ansor([1e10], error=7), b"hello\n", ansor([0]),
        ansor([0.003], target=CUDA), ansor([0.004], key=OTHER), ansor([0.004], key=OTHER),
    )  # fmt: skip
    return write(tmp_path / "log.json", *lines)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples(command: str) -> None:
    result = run_command("logs", command, "--help")
    assert result.exit_code == 0
    assert f"tvm-ext logs {command} " in result.stdout
    assert f"tvm-ext logs {command} " in run_command("logs", "--help").stdout


def test_info(log: Path) -> None:
    result = run_command("logs", "info", log)
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[:10] == [
        f"{log}: ansor v0.6",
        "records: 5 valid, 1 failed, 2 skipped",
        "  failed 1: run_timeout_error (first: line 3)",
        f"  skipped 1 line: not JSON (first: {log}, line 4: Expecting value at column 1)",
        f"  skipped 1 line: bad time (first: {log}, line 5: 0 s; allowed: above 0 and below 1e10)",
        "targets:",
        f"  {LLVM} (cpu): 5",
        f"  {CUDA} (gpu): 1",
        "tasks: 3",
        lines[9],
    ]
    rows = [[cell.strip() for cell in line.split("│")[2:-1]] for line in lines if "│" in line]
    assert rows == [[LLVM, "3", "2", "1"], [CUDA, "1", "1", "3"], [LLVM, "2", "2", "4"]]


def test_info_of_several(log: Path, tmp_path: Path) -> None:
    database(tmp_path / "db", [4])
    result = run_command("logs", "info", log, tmp_path / "db", "--tasks", "1")
    assert result.exit_code == 0
    first, second = result.stdout.split("\n\n")
    assert first.endswith("and 2 more (--tasks)")
    assert second.splitlines()[:2] == [
        f"{tmp_path}/db/database_tuning_record.json: metaschedule",
        "records: 2 valid, 1 failed, 0 skipped",
    ]
    assert '(["float32",[4,8]],["float32",[8,6]],["float32",[4,6]])' in second
    result = run_command("logs", "info", log, "--tasks", "0")
    assert result.stdout.endswith("tasks: 3\n")


def test_texts_that_look_like_markup(tmp_path: Path) -> None:
    log = write(tmp_path / "log.json", ansor(key='["[red]f[/]", 1]'), ansor(target="llvm -x=[/b]"))
    result = run_command("logs", "info", log)
    assert "[red]f[/](1)" in result.stdout
    assert "llvm -x=[/b]" in result.stdout


def test_best(log: Path, tmp_path: Path) -> None:
    result = run_command("logs", "best", log, "--top", "2", "-o", tmp_path / "out.json")
    assert result.exit_code == 0
    assert result.stdout == f"{tmp_path}/out.json: 4 of 6 records\n"
    assert [line.split(":")[0] for line in result.stderr.splitlines()] == ["skipped 1 line"] * 2
    assert (tmp_path / "out.json").read_bytes().splitlines(keepends=True) == [
        ansor([0.001], steps=[]), ansor([0.002]), ansor([0.003], target=CUDA),
        ansor([0.004], key=OTHER),
    ]  # fmt: skip


def test_merge(log: Path, tmp_path: Path) -> None:
    words = (log, DATA / "ansor_versions.json", log, "-o", tmp_path / "out.json.gz")
    result = run_command("logs", "merge", *words)
    assert result.stdout == f"{tmp_path}/out.json.gz: 13 of 15 records\n"
    assert run_command("logs", "info", tmp_path / "out.json.gz").exit_code == 0


@pytest.mark.parametrize(
    ("words", "count"),
    [
        ((), 6), (("--device", "gpu"), 1), (("--target", "skylake"), 5), (("--valid",), 5),
        (("--workload", "[6,8]"), 2), (("--max-seconds", "0.002"), 2),
        (("--device", "cpu", "--valid", "--max-seconds", "3e-3"), 2),
    ],
)  # fmt: skip
def test_filter(log: Path, tmp_path: Path, words: tuple[str, ...], count: int) -> None:
    result = run_command("logs", "filter", log, *words, "-o", tmp_path / "out.json")
    assert result.exit_code == 0
    assert result.stdout == f"{tmp_path}/out.json: {count} of 6 records\n"
    assert len((tmp_path / "out.json").read_bytes().splitlines()) == count


@pytest.mark.parametrize("by", ["target", "workload"])
def test_split(log: Path, tmp_path: Path, by: str) -> None:
    result = run_command("logs", "split", log, "--by", by, "-o", tmp_path / "parts")
    assert result.stdout == f"{tmp_path}/parts: 6 of 6 records in 2 logs\n"
    assert len(list((tmp_path / "parts").iterdir())) == 2


def test_standard_input() -> None:
    from click.testing import CliRunner

    from tvm_ext.cli import main

    sample = (DATA / "ansor_versions.json").read_bytes()
    result = CliRunner().invoke(main, ["logs", "info", "-"], input=sample)
    assert result.exit_code == 0
    assert result.stdout.startswith("-: ansor v0.2, v0.3, v0.5, v0.6\nrecords: 7 valid, 2 failed")


def test_errors(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    text = write(tmp_path / "text.json", b"hello\n")
    database(tmp_path / "db", [4])
    for command in COMMANDS:
        output = () if command == "info" else ("-o", out)
        fails(r"gone\.json: No such file", "logs", command, log, tmp_path / "gone.json", *output)
        fails("no readable record; 1 lines were", "logs", command, text, *output)
        fails("Missing argument 'FILE...'", "logs", command, *output, code=2)
        if output:
            fails("allowed: logs of one format", "logs", command, log, tmp_path / "db", *output)
            fails("Missing option '-o'", "logs", command, log, code=2)
            fails("can't write", "logs", command, log, "-o", tmp_path / "gone" / "out")
    fails("no record to write", "logs", "filter", log, "--target", "hexagon", "-o", out)
    fails("it is there", "logs", "split", log, "-o", tmp_path)
    fails("'fpga' is not one of", "logs", "filter", log, "--device", "fpga", "-o", out, code=2)
    fails("0.0 is not in the range", "logs", "filter", log, "--max-seconds", "0", "-o", out, code=2)
    fails("0 is not in the range", "logs", "best", log, "--top", "0", "-o", out, code=2)
    assert not out.exists()
