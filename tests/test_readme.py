"""The documentation's examples run, and the output they show is what they print."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.markdown import ROOT, python_blocks


@pytest.mark.parametrize("name", ["README.md", "docs/plan.md"])
def test_examples(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = python_blocks(name)
    assert len(blocks) == 2
    scope: dict[str, object] = {"__name__": "example"}
    for block in blocks:
        exec(compile(block, name, "exec"), scope)
    printed = capsys.readouterr().out
    for line in re.findall(r"^# (class .*)$", "\n".join(blocks), re.M):
        assert line in printed


def test_links() -> None:
    for name in ("README.md", "CONTRIBUTING.md", "docs/plan.md"):
        prose = re.sub(r"`[^`]*`", "", (ROOT / name).read_text(encoding="utf-8"))
        for target in re.findall(r"\]\((?!http)([^)#]+)\)", prose):
            assert (ROOT / name).parent.joinpath(target).exists(), f"{name}: {target}"
