"""The documentation's examples run, and the output they show is what they print."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.markdown import ROOT, python_blocks


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("README.md", 2),
        ("docs/plan.md", 3),
        ("docs/pruning.md", 1),
        ("docs/transfer.md", 3),
        ("docs/relay_migration.md", 5),
        ("docs/exploring.md", 1),
    ],
)
def test_examples(
    name: str,
    count: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = python_blocks(name)
    assert len(blocks) == count
    scope: dict[str, object] = {"__name__": "example"}
    for block in blocks:
        exec(compile(block, name, "exec"), scope)
    printed = capsys.readouterr().out
    for line in re.findall(r"^# (class .*)$", "\n".join(blocks), re.M):
        assert line in printed


def test_links() -> None:
    for name in (
        "README.md", "CONTRIBUTING.md", "docs/plan.md", "docs/pruning.md", "docs/transfer.md",
        "docs/relay_migration.md", "docs/exploring.md", "docs/isa.md", "docs/simulator.md",
        "docs/driver.md", "docs/supported_ops.md",
    ):  # fmt: skip
        prose = re.sub(r"`[^`]*`", "", (ROOT / name).read_text(encoding="utf-8"))
        for target in re.findall(r"\]\((?!http)([^)#]+)\)", prose):
            assert (ROOT / name).parent.joinpath(target).exists(), f"{name}: {target}"
