"""Epilogues inside kernels: operands in the output's layout, lifted, and by rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tests.schedules.kernels import stored_operand
from tests.schedules.snippets import run_snippet
from tvm_ext.schedules import emit
from tvm_ext.schedules.emit_epilogue import apply_epilogue, lifted_epilogue, rowwise_epilogue
from tvm_ext.schedules.epilogue import Epilogue, Operand, Step


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def addition(shape: tuple[int, ...]) -> Epilogue:
    """The result plus one operand."""
    steps = (Step("add", (("value", 0), ("operand", 0))),)
    return Epilogue(steps, (Operand(shape, "float32"),))


OPERANDS = [
    (10,),
    (1,),
    (4, 1),
    (3, 1, 10),
    (2, 1, 4, 1),
    (2, 3, 4, 10),
    (1, 1, 1, 1),
    (1, 3, 1, 10),
]


@pytest.mark.parametrize("shape", OPERANDS, ids=str)
def test_rowwise_epilogue_broadcasts_as_numpy(shape: tuple[int, ...]) -> None:
    out_shape = (2, 3, 4, 10)
    result, operand = floats(24, 10), floats(*shape, seed=1)

    def body(source: Any, x: Any, out: Any) -> None:
        finish = rowwise_epilogue(addition(shape), [x], out_shape)
        with emit.nest((24, 10)) as (row, column):
            T.buffer_store(out, finish(row, column, source[row, column]), [row, column])

    got = run_snippet(body, result, operand, shape=(24, 10))
    want = (result.reshape(out_shape) + operand).reshape(24, 10)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("block", [0, 4])
def test_epilogue_reads_operands_in_the_outputs_layout(block: int) -> None:
    """One of every channel, one of a single channel, one of every element."""
    shapes = [(1, 8, 1), (2, 1, 3), (2, 8, 3)]
    arrays = [floats(*s, seed=i) for i, s in enumerate(shapes)]
    steps = tuple(Step("add", (("value", i), ("operand", i))) for i in range(3))
    epilogue = Epilogue(steps, tuple(Operand(s, "float32") for s in shapes))

    def body(*buffers: Any) -> None:
        *operands, out = buffers
        with emit.nest(out.shape if not block else (2, 2, 3, 4)) as index:
            one = tirx.const(1.0, "float32")
            value = apply_epilogue(epilogue, operands, block, index, [one])
            T.buffer_store(out, value, index)

    want = stored_operand(1 + arrays[0] + arrays[1] + arrays[2], block)
    got = run_snippet(body, *(stored_operand(x, block) for x in arrays), shape=want.shape)
    np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("block", [0, 4])
@pytest.mark.parametrize(
    ("shape", "out", "lifted"),
    [
        ((1, 8, 1), (1, 20), (1, 8, 1, 1)),
        ((1, 8, 7), (1, 7), (1, 8, 1, 7)),
        ((2, 8, 20), (1, 20), (2, 8, 1, 20)),
        ((2, 8, 5, 4), (1, 20), (2, 8, 1, 20)),
        ((1, 8, 1, 1), (1, 35), (1, 8, 1, 1)),
        ((1, 1, 1, 1), (1, 20), (1, 1, 1, 1)),
        ((2, 8, 2, 5, 2), (1, 20), (2, 8, 1, 20)),
        ((1, 8, 5, 4), (5, 4), (1, 8, 5, 4)),
        ((1, 1, 3, 5), (3, 5), (1, 1, 3, 5)),
    ],
    ids=str,
)
def test_operands_are_seen_under_the_kernels_dimensions(
    shape: tuple[int, ...], out: tuple[int, ...], lifted: tuple[int, ...], block: int
) -> None:
    x = floats(*shape)
    want = stored_operand(x.reshape(lifted), block)

    def body(operand: Any, result: Any) -> None:
        seen, (view,) = lifted_epilogue(addition(shape), [operand], out, block)
        assert seen.operands[0].shape == lifted
        with emit.nest(want.shape) as index:
            T.buffer_store(result, view[index], index)

    got = run_snippet(body, stored_operand(x, block), shape=want.shape)
    np.testing.assert_array_equal(got, want)
