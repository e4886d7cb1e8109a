"""Candidates that are right, wrong, crash or hang, each alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tvm
from tvm.script import tirx as T

from tests.schedules.kernels import HOST
from tests.transfer.programs import conv, numpy_conv, sketches
from tvm_ext.transfer.tune_measure import MeasureOptions, Measurer, reference

PROGRAM = conv(4, 8, 6, 3)
OPTIONS = MeasureOptions(run_timeout_s=6.0, repeats=2, least_ms=1.0)


def calling(name: str, argument: int) -> tvm.IRModule:
    """A kernel that calls a function of libc."""

    @T.prim_func
    def main(
        x: T.Buffer((1, 4, 6, 6), "float32"), w: T.Buffer((8, 4, 3, 3), "float32"),
        b: T.Buffer((1, 8, 1, 1), "float32"), y: T.Buffer((1, 8, 6, 6), "float32"),
    ) -> None:  # fmt: skip
        T.evaluate(T.call_extern("int32", name, argument))

    return tvm.IRModule({"main": main.with_attr("global_symbol", "main")})


def test_each_candidate_fails_alone(tmp_path: Path) -> None:
    good = sketches(PROGRAM)[0].mod
    wrong = calling("abs", 1)  # writes nothing
    unlinked = calling("no_such_function_anywhere", 1)
    with Measurer(HOST, tmp_path, OPTIONS) as measurer:
        found = measurer.measure(
            [(PROGRAM, mod) for mod in (good, wrong, unlinked, calling("raise", 11), good)]
        )
        (hung,) = measurer.measure([(PROGRAM, calling("sleep", 60))])
    assert found[0].failure == found[4].failure == ""
    assert 1e-7 < found[0].seconds < 1
    assert found[1].failure == "check: relative error inf; at most 0.0001"
    assert found[2].failure.startswith("run: ")
    assert found[3].failure.startswith("run: crashed")
    assert hung.failure == "run: timed out"
    assert all(np.isinf(m.seconds) for m in (*found[1:4], hung))
    assert list(tmp_path.iterdir()) == []


def test_the_reference_is_the_layer() -> None:
    (x, weight, bias), out = reference(PROGRAM, HOST)
    assert x.shape == (1, 4, 6, 6)
    np.testing.assert_array_equal(weight, PROGRAM.constants[0])
    expected = numpy_conv(x, weight, 1, 1, ("add", "relu"), bias)
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(reference(PROGRAM, HOST)[0][0], x)
