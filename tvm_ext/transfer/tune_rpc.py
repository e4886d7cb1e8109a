"""Kernels timed on other machines, through TVM's RPC tracker and servers."""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import numpy as np
from tvm import rpc

from tvm_ext.errors import TuningError
from tvm_ext.target import CpuTarget
from tvm_ext.transfer import tune_rpc_worker
from tvm_ext.transfer.tensor_program import LayerProgram
from tvm_ext.transfer.tune_measure import (
    Measurement,
    MeasureOptions,
    Measurer,
    judged,
    reason,
)
from tvm_ext.transfer.tune_options import TuningOptions, tracker_address
from tvm_ext.transfer.tune_processes import Outcome, Processes
from tvm_ext.transfer.tune_worker import relative_error

# So many servers may be lost under a candidate; then it fails, for it may be what ends them.
_LOSSES = 3
# A job may wait for the one before it, and a lost server's for that of another.
_WAITS = 3


class RpcMeasurer(Measurer):
    """Builds and checks candidates here, and times them on the servers of a tracker.

    Each candidate runs here once first, in a process of its own: one that crashes would end TVM's
    server too. The output of the run that is timed is compared with the default schedule's as
    well. A candidate whose server is lost goes to another one.

    Parameters
    ----------
    target : CpuTarget
        The servers' CPU, which is also this machine's.
    folder : Path
        As for `Measurer`.
    options : MeasureOptions, optional
    tracker : tuple of str and int
        Host and port.
    key : str
        The servers' key at the tracker.
    server_wait_s : float
        So long, all servers may be away.

    Raises
    ------
    TuningError
        Nothing answers at the tracker's address, or no server of this key comes up in time; what
        was measured before is in the store.
    ArtifactError
        There is no C compiler to link kernels with.
    """

    def __init__(
        self, target: CpuTarget, folder: Path, options: MeasureOptions | None = None,
        *, tracker: tuple[str, int], key: str, server_wait_s: float = 60.0,
    ) -> None:  # fmt: skip
        self._tracker, self._key, self._server_wait_s = tracker, key, server_wait_s
        servers = self._servers()
        super().__init__(target, folder, options)
        self.workers = max(servers, target.cores)
        self._remote = Processes(Path(tune_rpc_worker.__file__))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._remote.__exit__(kind, error, trace)
        super().__exit__(kind, error, trace)

    def _run_built(self, built: Sequence[tuple[LayerProgram, Path]]) -> list[Measurement]:
        checked = self._run_local(built, workers=self.target.cores, least_ms=0.0, repeats=1)
        found = dict(enumerate(checked))
        waiting = [number for number, m in found.items() if not m.failure]
        losses = dict.fromkeys(waiting, 0)
        while waiting:
            outcomes = self._run_remote([built[number] for number in waiting])
            still = []
            for number, outcome in zip(waiting, outcomes, strict=True):
                measurement, lost = self._judge(*built[number], outcome)
                losses[number] += lost
                if lost and losses[number] < _LOSSES:
                    still.append(number)
                else:
                    found[number] = measurement
            waiting = still
        return [found[number] for number in range(len(built))]

    def _run_remote(self, built: Sequence[tuple[LayerProgram, Path]]) -> list[Outcome]:
        o, servers = self.options, self._servers()
        arguments = [
            (self._tracker, self._key, str(path), *self._arguments_of(program),
             o.least_ms, o.repeats, o.run_timeout_s)
            for program, path in built
        ]  # fmt: skip
        return self._remote.map("run_remote", arguments, servers, _WAITS * o.run_timeout_s)

    def _judge(
        self, program: LayerProgram, path: Path, outcome: Outcome
    ) -> tuple[Measurement, bool]:
        """What a run came to, and whether its server was lost."""
        if outcome.failure:
            return Measurement(np.inf, f"run: lost its server ({reason(outcome)})"), True
        status, why, seconds = outcome.value
        if status == "lost":
            lost = reason(Outcome(failure=why))
            return Measurement(np.inf, f"run: lost its server ({lost})"), True
        if status == "timeout":
            return Measurement(np.inf, "run: timed out"), False
        output = Path(f"{path}.npy")
        folder, _ = self._arguments_of(program)
        error = relative_error(np.load(output), np.load(f"{folder}/expected.npy"))
        output.unlink()
        return judged(error, seconds, self.options.tolerance), False

    def _servers(self) -> int:
        """How many servers there are, once there is one."""
        end = time.monotonic() + self._server_wait_s
        while not (count := server_count(self._tracker, self._key)):
            if time.monotonic() >= end:
                raise TuningError(
                    f"tracker {address_text(self._tracker)} has no server with the key "
                    f"{self._key!r} for {self._server_wait_s:.0f} s"
                )
            time.sleep(0.2)
        return count


def measurer(target: CpuTarget, folder: Path, options: TuningOptions) -> Measurer:
    """What measures under some options: here, or on the servers of their tracker."""
    if options.tracker is None:
        return Measurer(target, folder, options.measure)
    address = tracker_address(options.tracker)
    return RpcMeasurer(target, folder, options.measure, tracker=address, key=options.key)


def server_count(tracker: tuple[str, int], key: str) -> int:
    """Servers of a key that are connected to a tracker.

    Raises
    ------
    TuningError
        Nothing answers there, or it isn't a tracker.
    """
    try:
        # TVM's own would try for a minute.
        socket.create_connection(tracker, timeout=5.0).close()
        session = rpc.connect_tracker(*tracker)
        try:
            servers = session.summary()["server_info"]
        finally:
            session.close()
    except (OSError, RuntimeError, ValueError) as error:
        raise TuningError(f"no RPC tracker at {address_text(tracker)}: {error}") from error
    return sum(server["key"] == f"server:{key}" for server in servers)


def address_text(address: tuple[str, int]) -> str:
    """``host:port``."""
    return f"{address[0]}:{address[1]}"
