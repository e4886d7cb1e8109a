"""A norm between two places of one kernel."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import tvm
from tvm.script.ir_builder import tirx as T

from tests.schedules import oracles
from tests.schedules.kernels import HOST, NEON
from tests.schedules.normed_products import norm_workload, product_workload
from tvm_ext.schedules import emit
from tvm_ext.schedules.norm_stage import (
    declare_weights,
    norm_seconds,
    normalize_rows,
    takes_rows,
)


@pytest.mark.parametrize("columns", (5, 2 * HOST.lanes, 2 * HOST.lanes + 3))
def test_rows_are_read_and_written_through_functions(columns: int) -> None:
    """From every other row, to the rows in reverse order."""
    w = norm_workload("layer_norm", (3, columns))

    def body() -> None:
        data = emit.argument("data", (6, columns))
        weights = declare_weights(w)
        out = emit.argument("out", (3, columns))
        normalize_rows(
            w, HOST.lanes, 3, weights, lambda i, x: data[2 * i, x],
            lambda i, x, value: T.buffer_store(out, value, [2 - i, x]),
        )  # fmt: skip

    x, gamma, beta = (oracles.random(s, i) for i, s in enumerate(((6, columns), columns, columns)))
    out = tvm.runtime.tensor(np.full((3, columns), np.nan, "float32"))
    module = tvm.compile(tvm.IRModule({"main": emit.build(body)}), target=HOST.tvm).mod
    module["main"](*(tvm.runtime.tensor(a) for a in (x, gamma, beta)), out)
    rows = x[::2].astype("float64")
    rows -= rows.mean(1, keepdims=True)
    expected = rows / np.sqrt((rows**2).mean(1, keepdims=True) + w.epsilon) * gamma + beta
    np.testing.assert_allclose(out.numpy(), expected[::-1], rtol=1e-5, atol=1e-5)


def test_a_norm_of_other_rows_is_refused() -> None:
    w = norm_workload("layer_norm", (2, 3, 8))
    assert takes_rows(w, (2, 3, 8), HOST) and takes_rows(w, (6, 8), HOST)
    reason = takes_rows(w, (3, 16), HOST).reason
    assert reason == "a norm of 8 columns in (2, 3, 8); only one of the rows of (3, 16)"
    assert "float16" in takes_rows(replace(w, dtype="float16"), (6, 8), HOST).reason


def test_a_producer_is_no_part_of_the_norms_time() -> None:
    w = norm_workload("rms_norm", (6, 8))
    behind = replace(w, producer=product_workload((6, 4), 8))
    assert norm_seconds(w, NEON) == norm_seconds(behind, NEON) > w.flops / NEON.fma_peak
