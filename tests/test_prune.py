"""One verb for all ways to prune, on a small ONNX model and up to the compiled one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper

import tvm_ext
from tests import models
from tvm_ext.errors import ModelError, OptionError, PruningError, TargetError
from tvm_ext.passes.pruning import BlockPrune, ChannelPrune, MagnitudePrune, PatternPrune, prunables
from tvm_ext.target import resolve


def test_module_and_report_come_as_a_pair(convnet_onnx: Path) -> None:
    pruned = tvm_ext.prune(convnet_onnx, MagnitudePrune(0.25))
    module, report = pruned
    assert (pruned.module, pruned.report) == (module, report)
    assert [(r.name, round(r.density, 2)) for r in report.layers] == [
        ("c0", 1.0), ("c1", 0.25), ("c2", 0.25), ("scores", 1.0)
    ]  # fmt: skip


def test_the_compiled_model_computes_with_pruned_weights() -> None:
    """The same masks, put into the ONNX file, are the oracle's."""
    model = models.convnet()
    module, _ = tvm_ext.prune(model, BlockPrune(0.25, block=(8, 16)), exclude=())
    kept = {x.name: x.weights for x in prunables(module)}
    masked = onnx.ModelProto()
    masked.CopyFrom(model)
    for tensor in masked.graph.initializer:
        layer = {"w0": "c0", "w1": "c1", "w2": "c2", "w3": "scores"}.get(tensor.name)
        if layer:
            old, new = numpy_helper.to_array(tensor), kept[layer]
            assert np.isin(new, [0, *old.reshape(-1)]).all()
            assert np.count_nonzero(new) == pytest.approx(old.size / 4, abs=4)
            tensor.CopyFrom(numpy_helper.from_array(new, tensor.name))
    x = np.random.default_rng(0).normal(size=(1, 3, 12, 12)).astype("float32")
    session = onnxruntime.InferenceSession(masked.SerializeToString())
    expected = session.run(None, {"x": x})[0]
    found = tvm_ext.build(module)(x)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


def test_a_pruned_module_can_be_pruned_again() -> None:
    first, _ = tvm_ext.prune(models.convnet(), PatternPrune(lanes=16))
    _, report = tvm_ext.prune(first, MagnitudePrune(0.5), include="c1")
    assert report["c1"].density == 0.5
    assert report["c2"].density == pytest.approx(4 / 9, abs=1e-3)


@pytest.fixture(scope="module")
def wide() -> onnx.ModelProto:
    """A 3x3 convolution with enough to compute for zeros to pay, behind a small one."""
    rng = np.random.default_rng(0)
    weights = {
        "w0": rng.normal(size=(64, 8, 3, 3)), "w1": rng.normal(size=(128, 64, 3, 3)),
        "w2": rng.normal(size=(4, 128, 1, 1)),
    }  # fmt: skip
    nodes = [
        onnx.helper.make_node("Conv", ["x", "w0"], ["stem"], pads=[1, 1, 1, 1]),
        onnx.helper.make_node("Conv", ["stem", "w1"], ["wide"], pads=[1, 1, 1, 1]),
        onnx.helper.make_node("Conv", ["wide", "w2"], ["thin"]),
    ]
    graph = onnx.helper.make_graph(
        nodes,
        "wide",
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, (1, 8, 28, 28))],
        [onnx.helper.make_tensor_value_info("thin", onnx.TensorProto.FLOAT, None)],
        [numpy_helper.from_array(w.astype("float32"), n) for n, w in weights.items()],
    )
    opset = onnx.helper.make_opsetid("", 17)
    return onnx.helper.make_model(graph, opset_imports=[opset], ir_version=10)


# Numbers that no measurement changes.
NOMINAL = replace(resolve("native"), is_host=False)


def test_a_speedup_becomes_the_density_that_the_plan_needs(wide: onnx.ModelProto) -> None:
    scheme = BlockPrune(0.5, block=(8, 10_000))
    _, report = tvm_ext.prune(wide, scheme, speedup={"wide": 1.5}, target=NOMINAL)
    density = report["wide"].density
    assert 0.01 < density < 0.9

    def planned(share: float) -> float:
        pruned, _ = tvm_ext.prune(wide, scheme, include="wide", density=share)
        return tvm_ext.plan(pruned, NOMINAL).layers[1].estimate_us

    dense = tvm_ext.plan(wide, NOMINAL).layers[1].estimate_us
    # A plan also counts what it takes to start a kernel.
    assert dense / planned(density) == pytest.approx(1.5, abs=0.1)
    assert dense / planned(min(1.0, 1.5 * density)) < 1.45


def test_layers_that_cannot_be_so_fast_are_left_alone_unless_named(wide: onnx.ModelProto) -> None:
    scheme = BlockPrune(0.5, block=(8, 10_000))
    _, report = tvm_ext.prune(wide, scheme, speedup=1.5)
    assert report["wide"].density < 1
    assert report["thin"].density == 1
    assert report["thin"].note.startswith("speedup=1.5 is out of reach: ")
    with pytest.raises(PruningError, match=r"layer thin: speedup=1\.5 is out of reach"):
        tvm_ext.prune(wide, scheme, speedup={"thin": 1.5})


def test_channels_go_by_the_same_verb() -> None:
    module, report = tvm_ext.prune(models.convnet(), ChannelPrune(0.5, include="c1"))
    shapes = {x.name: x.weights.shape for x in prunables(module)}
    assert shapes["c1"] == (8, 16, 1, 1)
    assert [x.name for x in report.layers] == list(shapes)
    with pytest.raises(OptionError, match=r"density=0\.5: ChannelPrune takes its own options"):
        tvm_ext.prune(models.convnet(), ChannelPrune(0.5), density=0.5)


def test_the_rest_keeps_the_schemes_density(wide: onnx.ModelProto) -> None:
    scheme = MagnitudePrune(0.5)
    _, report = tvm_ext.prune(wide, scheme, exclude=(), density={"th*": 0.25})
    assert [round(r.density, 2) for r in report.layers] == [0.5, 0.5, 0.25]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"scheme": "pattern"}, OptionError, "scheme='pattern' has to be a PatternPrune"),
        ({"density": 2}, OptionError, r"density of '\*'=2 has to be"),
        ({"speedup": 1}, OptionError, r"speedup of '\*' is 1; it has to be a number above 1"),
        ({"speedup": {"c1": "x"}}, OptionError, "speedup of 'c1' is 'x'"),
        ({"speedup": 2.0, "density": {"c1": 0.5}}, OptionError, "layer c1 has a density and sp"),
        ({"speedup": {"conv9": 2.0}}, PruningError, "speedup='conv9' matches no layer .*: c1, c2"),
        ({"include": "conv9"}, PruningError, "include='conv9' matches .*: c0, c1, c2, scores"),
        ({"target": "z80"}, TargetError, "z80"),
        ({"model": 3}, ModelError, "can't load"),
    ],
)
def test_wrong_options_are_refused(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    given = {"model": models.convnet(), "scheme": MagnitudePrune(0.5), **options}
    with pytest.raises(error, match=message):
        tvm_ext.prune(given.pop("model"), given.pop("scheme"), **given)
