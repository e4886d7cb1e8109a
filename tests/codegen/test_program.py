"""Programs: parts that don't fit, and system memory by hand."""

from dataclasses import replace

import numpy as np
import pytest

from tests.codegen.streams import program
from tvm_ext.codegen.errors import ProgramError
from tvm_ext.codegen.program import Buffer, Layer

X = Buffer("x", "input", 4, (2, 3), "int8")
Y = Buffer("y", "output", 12, (2,), "int32")
PROGRAM = program(memory_bytes=24, constants=b"\x01\x02\x03", buffers=(X, Y))


def test_memory_by_hand():
    memory = PROGRAM.memory_image({"x": np.array([[-1, 2, 3], [4, 5, 6]], np.int8)})
    assert memory.dtype == np.uint8
    assert memory.tolist() == [1, 2, 3, 0, 255, 2, 3, 4, 5, 6, *[0] * 14]
    memory[12:20] = [1, 0, 0, 0, 254, 255, 255, 255]
    outputs = PROGRAM.outputs(memory)
    assert outputs.keys() == {"y"}
    assert outputs["y"].tolist() == [1, -2]
    memory[:] = 0
    assert outputs["y"].tolist() == [1, -2]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, r"the program has inputs \['x'\], not \[\]"),
        ({"x": np.zeros((2, 3), np.int8), "z": 1}, r"not \['x', 'z'\]"),
        ({"x": np.zeros((3, 2), np.int8)}, r"'x' is int8 \(3, 2\); allowed: int8 \(2, 3\)"),
        ({"x": np.zeros((2, 3), np.uint8)}, "'x' is uint8"),
    ],
)
def test_inputs_that_are_refused(inputs, message):
    with pytest.raises(ProgramError, match=message):
        PROGRAM.memory_image(inputs)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tags": (0, 0)}, "2 layer tags for 1 instructions"),
        ({"tags": (0,)}, "layer tags from 0 to 0; allowed: -1 to -1"),
        ({"tags": (-2,)}, "layer tags from -2 to -2"),
        ({"memory_bytes": 2}, "memory_bytes is 2; allowed: 3 bytes of constants to 4294967296"),
        ({"memory_bytes": 2**32 + 1}, "memory_bytes is 4294967297"),
        ({"buffers": (X, replace(Y, name="x"))}, "two buffers have the name 'x'"),
        ({"buffers": (replace(X, role="both"),)}, "role 'both'; allowed: input, output, spill"),
        ({"buffers": (replace(X, dtype="float32"),)}, "dtype 'float32'; allowed: int8, int32"),
        ({"buffers": (replace(X, shape=()),)}, r"shape \(\); allowed: sizes of 1 or more"),
        ({"buffers": (replace(X, shape=(2, 0)),)}, r"shape \(2, 0\)"),
        ({"buffers": (replace(X, address=2),)}, "bytes 2 to 8; allowed: behind the constants"),
        ({"buffers": (replace(X, address=19),)}, r"bytes 19 to 25; .* \(3\) and within 24"),
        ({"variant": "a\nb"}, "characters that can't be printed"),
        ({"layers": (Layer("a\0", "CONV"),)}, "characters that can't be printed"),
    ],
)
def test_parts_that_are_refused(change, message):
    with pytest.raises(ProgramError, match=message):
        replace(PROGRAM, **change)
