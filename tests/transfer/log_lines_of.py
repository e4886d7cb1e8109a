"""Lines of logs for the tests, and small MetaSchedule databases."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import tvm
from tvm import te
from tvm.s_tir import Schedule
from tvm.s_tir import meta_schedule as ms
from tvm.target import Target

DATA = Path(__file__).parent / "data"
HASH = "0123456789abcdef0123456789abcdef"
KEY = f'["{HASH}", [4, 8], [8, 2], [4, 2]]'
LLVM = "llvm -keys=cpu -mcpu=skylake-avx512"
CUDA = "cuda -keys=cuda,gpu -arch=sm_86"
HARDWARE = [2, 64, 64, 0, 0, 0, 0, 0]
STEPS: list[list[Any]] = [["SP", 2, 0, 4, [2], 1], ["AN", 2, 1, 2]]


def ansor(
    seconds: Iterable[Any] = (0.5,),
    key: str = KEY,
    target: str = LLVM,
    steps: Any = STEPS,
    error: Any = 0,
    version: Any = "v0.6",
    hardware: Any = HARDWARE,
) -> bytes:
    """A line of Ansor's."""
    task = [key, target, hardware, "", 2, []]
    result = [list(seconds), error, 1.5, 1700000000]
    line = {"i": [task, [[], steps]], "r": result, "v": version}
    return json.dumps(line).encode() + b"\n"


def edited(edit: Callable[[dict[str, Any]], object]) -> bytes:
    """A line of Ansor's after `edit` has changed what it holds."""
    data = json.loads(ansor())
    edit(data)
    return json.dumps(data).encode() + b"\n"


def write(path: Path, *lines: bytes) -> Path:
    """A file of these lines."""
    path.write_bytes(b"".join(lines))
    return path


def matmul(rows: int) -> tvm.IRModule:
    """A module with a matrix product, (rows, 8) by (8, 6)."""
    a = te.placeholder((rows, 8), "float32", "a")
    b = te.placeholder((8, 6), "float32", "b")
    k = te.reduce_axis((0, 8), "k")
    c = te.compute((rows, 6), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), "c")
    function = te.create_prim_func([a, b, c]).with_attr("global_symbol", "main")
    return tvm.IRModule({"main": function})


def database(directory: Path, rows: Iterable[int] = (4, 6)) -> Any:
    """A database that TVM wrote: of each product three records, two of which were measured."""
    directory.mkdir()
    stored = ms.database.JSONDatabase(work_dir=str(directory))
    target = Target({"kind": "llvm", "mcpu": "znver4", "num-cores": 2})
    for count in rows:
        mod = matmul(count)
        workload = stored.commit_workload(mod)
        arguments = ms.arg_info.ArgInfo.from_entry_func(mod, False)
        for tile, seconds in ((1, [3e-5, 1e-5, 2e-5]), (2, [1e10]), (3, [4e-6])):
            schedule = Schedule(mod)
            rows_loop, *_ = schedule.get_loops(schedule.get_sblock("c"))
            _, inner = schedule.split(rows_loop, [None, tile])
            schedule.unroll(inner)
            stored.commit_tuning_record(
                ms.database.TuningRecord(schedule.trace, workload, seconds, target, arguments)
            )
    return stored
