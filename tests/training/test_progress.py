"""The bar is shown on terminals only, and only when it is wanted."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from tvm_ext.training import progress


@pytest.mark.parametrize(
    ("terminal", "shown", "wanted"),
    [(True, True, True), (True, False, False), (False, True, False)],
)
def test_bar(monkeypatch: pytest.MonkeyPatch, terminal: bool, shown: bool, wanted: bool) -> None:
    stream = io.StringIO()

    def console(**_: Any) -> Console:
        return Console(file=stream, force_terminal=terminal, width=100)

    monkeypatch.setattr(progress, "Console", console)
    with progress.training_progress(4, shown) as tell:
        tell(1, "round 1, admm, loss 0.5")
    assert ("round 1, admm, loss 0.5" in stream.getvalue()) is wanted
    assert ("1/4" in stream.getvalue()) is wanted
