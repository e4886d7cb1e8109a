"""Vectors of every n-th element, and that no element is loaded for itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm

from tests.schedules.kernels import AVX512
from tests.schedules.snippets import V, run_snippet
from tvm_ext.schedules import emit
from tvm_ext.schedules.lane_transpose import store_vector
from tvm_ext.schedules.strided_load import load_strided


@pytest.mark.parametrize("stride", [1, 2, 3, 4])
def test_elements(stride: int) -> None:
    source = np.arange(2 * (1 + stride * V), dtype="float32").reshape(2, -1)

    def body(data: Any, out: Any) -> None:
        store_vector(out, load_strided(data, [1, 1], stride, V), [0], V)

    found = run_snippet(body, source, shape=(V,))
    np.testing.assert_array_equal(found, source[1, 1::stride][:V])


def test_whole_vectors_are_loaded() -> None:
    def body() -> None:
        data, out = emit.argument("data", (64,)), emit.argument("out", (16,))
        store_vector(out, load_strided(data, [0], 2, 16), [0], 16)

    function = emit.build(body).with_attr("global_symbol", "main")
    text = tvm.compile(tvm.IRModule({"main": function}), target=AVX512.tvm).mod.inspect_source(
        "asm"
    )
    assert "vpermt2ps" in text or "vpermi2ps" in text
    assert "vinsertps" not in text
