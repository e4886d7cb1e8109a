"""Plans with tuned layers, as a user might edit them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import tvm_ext
from tests.transfer.programs import conv, record
from tests.transfer.tuning import network
from tvm_ext.errors import PlanError
from tvm_ext.plan import Plan

MOD = network(6, 4)
TRACE = record(conv(4, 4, 6, 3, 1, ("relu",)), 1.0).trace


def plan(layer: str, **changes: Any) -> Plan:
    """The default plan with one layer tuned."""
    made = tvm_ext.plan(MOD)
    fields = {
        "algorithm": "tuned", "layout": ["NCHW", "NCHW"], "params": {"record": "", "trace": TRACE},
        **changes,
    }  # fmt: skip
    return replace(made, layers=[replace(e, **fields) if e.name == layer else e for e in made])


@pytest.mark.parametrize(
    ("layer", "changes", "message"),
    [
        ("conv2d_0", {"params": {}}, r"layer conv2d_0: tuned\.record = None is not a text"),
        (
            "conv2d_0", {"layout": ["NCHW", "NCHW8c"]},
            r"layer conv2d_0: layout \['NCHW', 'NCHW8c'\]; tuned knows the model's own alone",
        ),
        ("reshape_2", {}, "layer reshape_2: tuned doesn't apply: a view computes nothing"),
        ("matmul_3", {}, r"layer matmul_3: tuned\.trace doesn't fit: Cannot find a block"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(layer: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        tvm_ext.build(MOD, plan=plan(layer, **changes))


def test_the_table_shows_no_trace() -> None:
    text = str(plan("conv2d_0"))
    assert f"trace=({len(TRACE)} characters)" in text
    assert "SamplePerfectTile" not in text


def test_layers_with_the_same_trace_share_a_kernel() -> None:
    both = plan("conv2d_0")
    tuned = both["conv2d_0"]
    both = replace(
        both, layers=[replace(tuned, name=e.name) if e.name == "conv2d_1" else e for e in both]
    )
    exe = tvm_ext.build(MOD, plan=both)
    kernels = [c.kernel for c in exe.program.calls if c.layer.startswith("conv2d")]
    assert len(kernels) == 2
    assert len(set(kernels)) == 1
