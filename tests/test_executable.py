"""Calling a compiled model: inputs in every form, clear refusals, outputs of one's own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvm_ext
from tests import models
from tvm_ext.errors import CallError

_RUN = """
import sys, numpy as np, tvm_ext
np.save(sys.argv[3], tvm_ext.load(sys.argv[1])(np.load(sys.argv[2])))
"""


def test_dict_list_and_array(convnet: tvm_ext.Executable) -> None:
    inputs = models.inputs_for(models.convnet())
    want = models.oracle(models.convnet(), inputs)[0]
    for form in (inputs, [inputs["x"]], (inputs["x"],), inputs["x"]):
        assert models.relative_error(convnet(form), want) < models.RTOL


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


_GOOD = np.zeros((2, 3), "float32")


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"a": _GOOD}, r"input 'b' is missing; the inputs are \['a', 'b'\]"),
        ({"a": _GOOD, "b": _GOOD, "c": _GOOD}, r"unknown input 'c'; the inputs are \['a', 'b'\]"),
        ([_GOOD], r"1 inputs given; the inputs are \['a', 'b'\]"),
        (_GOOD, r"1 inputs given"),
        ([_GOOD, np.zeros((3, 2), "float32")], r"'b' has shape \(3, 2\); allowed: \(2, 3\)"),
        ([_GOOD, np.zeros((2, 3))], r"'b' has dtype float64; allowed: float32"),
        ([_GOOD, np.zeros(6, "float32")], r"'b' has shape \(6,\); allowed: \(2, 3\)"),
    ],
)
def test_refusals(two_inputs: tvm_ext.Executable, inputs: Any, message: str) -> None:
    with pytest.raises(CallError, match=message):
        two_inputs(inputs)


def test_strided_inputs(convnet: tvm_ext.Executable) -> None:
    x = models.inputs_for(models.convnet())["x"]
    turned = np.ascontiguousarray(x.transpose(0, 1, 3, 2)).transpose(0, 1, 3, 2)
    assert not turned.flags.c_contiguous
    assert np.array_equal(convnet(turned), convnet(x))


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


def test_benchmark_and_profile(convnet: tvm_ext.Executable) -> None:
    timing = convnet.benchmark(runs=5, min_seconds=0)
    assert timing.runs == 5
    assert 0 < timing.p10_ms <= timing.median_ms <= timing.p90_ms
    # Worked by hand: 2 * 144 positions * (16*27 + 16*16 + 32*144) multiply-adds, and the head.
    convolutions = 2 * 144 * (16 * 27 + 16 * 16 + 32 * 144)
    assert convolutions < convnet.flops < 1.1 * convolutions
    assert timing.gflops == pytest.approx(convnet.flops / timing.median_ms / 1e6)
    profile = convnet.profile(runs=2)
    assert profile.total_ms == pytest.approx(sum(row.ms for row in profile.rows))
    times = {row.name for row in profile.rows}
    # A joined concatenation and a view make no call, so they take no time.
    assert times == {call.layer for call in convnet.program.calls}
    assert {
        layer.name for layer in convnet.plan if layer.ops[0] in ("nn.conv2d", "matmul")
    } <= times


def test_random_inputs_are_seeded(two_inputs: tvm_ext.Executable) -> None:
    first, again = two_inputs.random_inputs(3), two_inputs.random_inputs(3)
    other = two_inputs.random_inputs(4)
    assert np.array_equal(first["a"], again["a"])
    assert not np.array_equal(first["a"], other["a"])


def test_assembly_is_text(convnet: tvm_ext.Executable) -> None:
    assert convnet.program.calls[0].kernel in convnet.assembly()


def test_other_cpu_builds_but_does_not_run() -> None:
    exe = tvm_ext.build(
        models.two_inputs(), {"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "cortex-a72"}
    )
    with pytest.raises(CallError, match="compiled for cortex-a72"):
        exe([_GOOD, _GOOD])
