"""The time of each layer."""

from __future__ import annotations

import pytest

import tvm_ext


def test_profile(convnet: tvm_ext.Executable) -> None:
    profile = convnet.profile(runs=2)
    assert profile.total_ms == pytest.approx(sum(row.ms for row in profile.rows))
    times = {row.name for row in profile.rows}
    # A joined concatenation and a view make no call, so they take no time.
    assert times == {call.layer for call in convnet.program.calls}
    assert {
        layer.name for layer in convnet.plan if layer.ops[0] in ("nn.conv2d", "matmul")
    } <= times
