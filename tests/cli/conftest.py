"""Fixtures of the command line's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tvm_ext import threads


@pytest.fixture
def all_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Undo --threads."""
    before = threads.default_threads()
    # Start the pool with all of them: it never grows.
    threads.use(before)
    monkeypatch.setenv("TVM_NUM_THREADS", str(before))
    yield
    threads.use(before)
