"""One fork server for all tests, where each would wait seconds for its own to load TVM.

A server keeps nothing from job to job: each job is a child of its own. `test_tune_processes` starts
servers of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import pytest

from tvm_ext.transfer import tune_measure, tune_rpc
from tvm_ext.transfer.tune_processes import Processes


class SharedProcesses(Processes):
    """Processes that stay when a measurer that uses them ends."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass

    def end(self) -> None:
        """End them at last."""
        self._end()


@pytest.fixture(scope="session", autouse=True)
def shared_fork_servers() -> Iterator[None]:
    """Measurers get the same server for the same jobs."""
    servers: dict[Path, SharedProcesses] = {}

    def shared(jobs: Path) -> SharedProcesses:
        if jobs not in servers:
            servers[jobs] = SharedProcesses(jobs)
        return servers[jobs]

    with pytest.MonkeyPatch.context() as patch:
        for module in (tune_measure, tune_rpc):
            patch.setattr(module, "Processes", shared)
        yield
    for server in servers.values():
        server.end()
