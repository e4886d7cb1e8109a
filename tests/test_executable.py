"""Calling a compiled model: right outputs, of one's own, the same every time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tvm_ext
from tests import models
from tvm_ext.errors import CallError

_RUN = """
import sys, numpy as np, tvm_ext
np.save(sys.argv[3], tvm_ext.load(sys.argv[1])(np.load(sys.argv[2])))
"""


def test_two_inputs_and_outputs(two_inputs: tvm_ext.Executable) -> None:
    assert two_inputs.input_names == ("a", "b")
    assert two_inputs.output_names == ("total", "positive")
    inputs = models.inputs_for(models.two_inputs())
    want = models.oracle(models.two_inputs(), inputs)
    for form in (inputs, [inputs["a"], inputs["b"]], {"b": inputs["b"], "a": inputs["a"]}):
        got = two_inputs(form)
        assert isinstance(got, list)
        for mine, theirs in zip(got, want, strict=True):
            assert models.relative_error(mine, theirs) < models.RTOL


def test_outputs_are_fresh_and_inputs_untouched(convnet: tvm_ext.Executable) -> None:
    x = models.inputs_for(models.convnet())["x"]
    kept = x.copy()
    first = convnet(x)
    saved = first.copy()
    convnet(models.inputs_for(models.convnet(), seed=9)["x"])
    assert np.array_equal(first, saved)
    first[:] = 0
    assert np.array_equal(convnet(x), saved)
    assert np.array_equal(x, kept)


def test_runs_after_a_reuse_of_memory(convnet: tvm_ext.Executable) -> None:
    """The arena starts each run with what the last one left there."""
    x = models.inputs_for(models.convnet())["x"]
    first = convnet(x)
    for buffer, array in zip(convnet.program.buffers, convnet.memory.arrays, strict=True):
        if buffer.kind == "arena":
            array.fill(np.nan)
    assert np.array_equal(convnet(x), first)


def test_threads_do_not_change_a_bit(
    convnet: tvm_ext.Executable, convnet_file: Path, tmp_path: Path
) -> None:
    x = models.inputs_for(models.convnet())["x"]
    np.save(tmp_path / "x.npy", x)
    for count in ("1", "2"):
        subprocess.run(
            [sys.executable, "-c", _RUN, str(convnet_file), "x.npy", f"y{count}.npy"],
            cwd=tmp_path, check=True, env={**os.environ, "TVM_NUM_THREADS": count},
        )  # fmt: skip
    one, two = (np.load(tmp_path / f"y{count}.npy") for count in "12")
    assert np.array_equal(one, two)
    assert np.array_equal(one, convnet(x))


def test_assembly_is_text(convnet: tvm_ext.Executable) -> None:
    assert convnet.program.calls[0].kernel in convnet.assembly()


def test_other_cpu_builds_but_does_not_run() -> None:
    exe = tvm_ext.build(
        models.two_inputs(), {"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "cortex-a72"}
    )
    with pytest.raises(CallError, match="compiled for cortex-a72"):
        exe(exe.random_inputs())
