"""What all tests of this folder share."""

import pytest

from tests.transfer.fork_servers import shared_fork_servers
from tvm_ext import target

__all__ = ["shared_fork_servers"]


@pytest.fixture
def steady(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host whose measured peak and bandwidth don't change between runs, as its plans would."""
    monkeypatch.setattr(target, "_measured", lambda _: (100e9, 10e9))
