"""Workloads and records that Ansor measured, and small DAGs by hand."""

from __future__ import annotations

import gzip
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import tvm

from tvm_ext.transfer.ansor import ComputeDag, DagLibrary
from tvm_ext.transfer.record import Workload, nested_tuple

DATA = Path(__file__).parent / "data"


def load(name: str) -> list[dict[str, Any]]:
    """The entries of a data file."""
    return json.loads(gzip.decompress((DATA / f"{name}.json.gz").read_bytes()))


@cache
def library() -> DagLibrary:
    """The DAGs of ResNet-50 and GoogLeNet, as Ansor printed them."""
    return DagLibrary(load("tasks"))


def workload(entry: dict[str, Any]) -> Workload:
    """The workload of a task or of a record."""
    return Workload(entry["key"], nested_tuple(entry["shapes"]), "dag")


def random_inputs(dag: ComputeDag, seed: int = 0) -> list[np.ndarray]:
    """Standard normal numbers in float32 for every placeholder."""
    rng = np.random.default_rng(seed)
    count = sum(stage.placeholder for stage in dag.stages)
    return [rng.standard_normal(shape).astype("float32") for _, shape in dag.arguments[:count]]


def run(module: tvm.IRModule, dag: ComputeDag, inputs: list[np.ndarray]) -> np.ndarray:
    """The one output of a scheduled module on this machine's CPU."""
    executable = tvm.compile(module, target="llvm")
    out = np.full(dag.arguments[-1][1], np.nan, "float32")
    buffer = tvm.runtime.tensor(out)
    executable["main"](*[tvm.runtime.tensor(array) for array in inputs], buffer)
    return buffer.numpy()


def on_cpu(module: tvm.IRModule) -> tvm.IRModule:
    """The module with threads one after the other, and shared and local memory as plain memory."""
    script = re.sub(r"T\.thread_binding\((\d+), thread=\"[\w.]+\"", r"T.serial(\1", module.script())
    script = re.sub(r"scope=\"(shared|local)\"", 'scope="global"', script)
    assert "thread" not in script
    return tvm.script.from_source(script)


def assert_close(found: np.ndarray, expected: np.ndarray, tolerance: float = 1e-5) -> None:
    """No element further off than the tolerance times the largest expected."""
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= tolerance * np.abs(expected).max()
