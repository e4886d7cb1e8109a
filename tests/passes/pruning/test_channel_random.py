"""ChannelPrune on random graphs: the same as the dense model with the lost filters zeroed.

Which filters are lost is read off the biases that are left, all of which are different.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import tvm
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tvm.relax import op

from tests.passes.pruning.channel_build import Build, Network, Weights
from tests.passes.pruning.channel_evaluation import evaluate
from tests.passes.relax_models import array
from tvm_ext.passes import dataflow as df
from tvm_ext.passes.pruning import ChannelPrune

_GRAPHS = int(os.environ.get("TVM_EXT_RANDOM_GRAPHS", "25"))
# Not shrinking, which builds hundreds of graphs.
_PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
_KINDS = (
    "conv", "conv", "conv", "groups", "depthwise", "relu", "add", "multiply", "concat", "halves",
    "slice", "flip", "shuffle", "pool", "pad", "gate",
)  # fmt: skip


def _channels(x: Any) -> int:
    return int(x.ty.shape.values[1])


class Drawn:
    """A graph whose operators are drawn once, and built again for other weights."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self._drawn: list[Any] = []
        self._next = 0

    def __call__(self, strategy: st.SearchStrategy[Any]) -> Any:
        """What was drawn at this place."""
        if self._next == len(self._drawn):
            self._drawn.append(self._draw(strategy))
        self._next += 1
        return self._drawn[self._next - 1]

    def body(self, b: Build, x: Any) -> Any:
        """Up to twelve operators on 4 x 4 images, and a head that reads all loose ends."""
        self._next = 0
        values = [x, b.conv("stem", x, 12)]
        for number in range(self(st.integers(2, 12))):
            kind = self(st.sampled_from(_KINDS))
            source = values[self(st.integers(1, len(values) - 1))]
            values += self._extended(b, kind, source, values, f"layer{number}")
        ends = values[self(st.integers(1, len(values) - 1)) :]
        return b.head(b.concat(*ends))

    def _extended(self, b: Build, kind: str, x: Any, values: list[Any], name: str) -> list[Any]:
        channels = _channels(x)
        divisors = [g for g in (1, 2, 3, 4) if channels % g == 0]
        if kind == "conv":
            return [b.conv(name, x, self(st.integers(1, 12)), self(st.sampled_from([1, 3])))]
        if kind == "groups":
            groups = self(st.sampled_from(divisors))
            return [b.conv(name, x, groups * self(st.integers(1, 4)), 3, groups=groups)]
        if kind == "depthwise":
            return [b.conv(name, x, channels * self(st.integers(1, 2)), 3, groups=channels)]
        if kind == "relu":
            return [b.relu(x)]
        if kind in ("add", "multiply"):
            same = [v for v in values if _channels(v) == channels]
            other = same[self(st.integers(0, len(same) - 1))]
            return [b.emit(getattr(op, kind)(x, other))]
        if kind == "concat":
            return [b.concat(x, values[self(st.integers(0, len(values) - 1))])]
        if kind == "halves":
            return list(b.halves(x)) if channels % 2 == 0 else []
        if kind == "slice":
            begin = self(st.integers(0, channels - 1))
            step = self(st.sampled_from([1, 2]))
            return [b.emit(op.strided_slice(x, [1], [begin], [channels], [step]))]
        if kind == "flip":
            return [b.emit(op.flip(x, 1))]
        if kind == "shuffle":
            return [b.shuffle(x, self(st.sampled_from(divisors)))]
        if kind == "pool":
            pooled = b.emit(op.nn.max_pool2d(x, (3, 3), (1, 1)))
            return [b.emit(op.nn.pad(pooled, [0, 0, 0, 0, 1, 1, 1, 1]))]
        if kind == "pad":
            return [b.emit(op.nn.pad(x, [0, 0, 1, 2, 0, 0, 0, 0]))]
        mean = b.emit(op.mean(x, [2, 3], keepdims=True))
        return [b.emit(op.multiply(x, b.emit(op.sigmoid(b.conv(name, mean, channels)))))]


def _zeroed(weights: Weights, new: tvm.IRModule) -> Weights:
    """The weights without the filters whose biases aren't in a module."""
    left = set()
    for _, expr in df.bindings(new["main"]):
        for arg in getattr(expr, "args", []):
            if isinstance(arg, df.Constant):
                left.update(df.value_of(arg).reshape(-1).tolist())
    zeroed = Weights()
    zeroed.arrays = {name: a.copy() for name, a in weights.arrays.items()}
    for name, bias in weights.arrays.items():
        layer = name.removesuffix(".bias")
        if layer in (name, "head"):
            continue
        gone = np.array([value not in left for value in bias.reshape(-1).tolist()])
        zeroed.arrays[layer][gone] = 0
        zeroed.arrays[name].reshape(-1)[gone] = 0
    return zeroed


@settings(max_examples=_GRAPHS, deadline=None, phases=_PHASES)
@given(st.data(), st.sampled_from([0.25, 0.5, 0.8]), st.sampled_from([1, 2]))
def test_random_graphs(data, density, multiple):
    network = Network("random", Drawn(data.draw).body, [], (1, 3, 4, 4))
    weights = Weights()
    mod = network.module(weights)
    prune = ChannelPrune(density, multiple=multiple, exclude=())
    new = prune(mod)
    x = array(3, *network.shape)
    expected = evaluate(network.module(_zeroed(weights, new)), x)
    np.testing.assert_allclose(
        evaluate(new, x), expected, rtol=1e-7, atol=1e-9 * np.abs(expected).max()
    )
    for layer in prune.report.layers:
        assert layer.filters >= 1
        assert (layer.filters < layer.shape[0]) or layer.note
