"""Scratch rows stay as far apart as they are meant to be."""

from __future__ import annotations

import re

import numpy as np
import pytest
import tvm
from tvm.script.ir_builder import tirx as T

from tests.schedules.kernels import HOST
from tvm_ext.schedules import emit
from tvm_ext.schedules.scratch_rows import ScratchRows


@pytest.mark.parametrize("floats,pitch", ((1, 16), (16, 16), (17, 48), (768, 784), (784, 784)))
def test_rows_are_an_odd_number_of_lines_apart_in_the_code(floats: int, pitch: int) -> None:
    def body() -> None:
        data, out = (emit.argument(name, (5, floats)) for name in ("data", "out"))
        rows = ScratchRows(5, floats)
        with emit.nest((5, floats)) as (i, x):
            rows.store(i, x, data[i, x] + 1.0)
        with emit.nest((5, floats)) as (i, x):
            T.buffer_store(out, rows.load(4 - i, x), [i, x])

    module = tvm.IRModule({"main": emit.build(body)})
    lowered = tvm.s_tir.transform.CompactBufferAllocation()(module)
    (size,) = re.findall(r"T.alloc_buffer\(\((\d+),\)\)", lowered.script())
    assert int(size) in (5 * pitch, 4 * pitch + floats)
    data = np.random.default_rng(0).standard_normal((5, floats)).astype("float32")
    out = tvm.runtime.tensor(np.full((5, floats), np.nan, "float32"))
    tvm.compile(module, target=HOST.tvm).mod["main"](tvm.runtime.tensor(data), out)
    np.testing.assert_array_equal(out.numpy(), data[::-1] + 1)
