"""A quantised CNN is one subgraph whose results are ONNX Runtime's, bit for bit."""

import numpy as np
import pytest
import tvm
from tvm import relax

from benchmarks.integer_session import integer_session
from tests.codegen.qdq_models import partitioned
from tests.codegen.quantized_cnns import images, quantized_model
from tvm_ext.codegen.byoc import register
from tvm_ext.codegen.network_layers import Conv

FORMS = [
    ("QDQ", "int8", True),
    ("QDQ", "uint8", True),
    ("QDQ", "uint8", False),
    ("QOperator", "int8", True),
    ("QOperator", "uint8", False),
]


def _results(mod, xs):
    register()
    machine = relax.VirtualMachine(tvm.compile(mod, target="llvm"), tvm.cpu())
    return [machine["main"](tvm.runtime.tensor(x)).numpy() for x in xs]


@pytest.mark.parametrize(("form", "activations", "per_channel"), FORMS)
def test_whole_network(form, activations, per_channel):
    model = quantized_model(form, activations, per_channel)
    found = partitioned(model)
    assert [len(s.network.layers) for s in found.subgraphs] == [10]
    assert found.refusals == ()
    assert found.share == 1
    assert found.macs == found.subgraphs[0].network.macs() == _macs()
    session, xs = integer_session(model), images(10, seed=1)
    for x, ours in zip(xs, _results(found.mod, xs), strict=True):
        np.testing.assert_array_equal(ours, session.run(None, {"x": x})[0])


@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
def test_depthwise_on_the_cpu(form):
    model = quantized_model(form, "uint8", False)
    found = partitioned(model, depthwise="none")
    assert [len(s.network.layers) for s in found.subgraphs] == [2, 7]
    assert [refusal.operator for refusal in found.refusals] == ["nn.conv2d"]
    assert found.macs - found.offloaded_macs == 24 * 9 * 81
    session, xs = integer_session(model), images(4, seed=1)
    for x, ours in zip(xs, _results(found.mod, xs), strict=True):
        # The CPU sums in float32, so a tie may fall the other way.
        np.testing.assert_allclose(ours, session.run(None, {"x": x})[0], atol=0.1)


def test_clamps_and_scales_of_the_layers():
    network = partitioned(quantized_model("QDQ", "int8")).subgraphs[0].network
    convs = [layer for layer in network.layers if isinstance(layer, Conv)]
    assert [layer.groups for layer in convs] == [1, 1, 24, 1, 1]
    for layer in convs:
        spec = network.tensors[layer.output]
        low = (layer.clamp[0] - spec.zero_point) * spec.scale
        # ReLU and ReLU6 are limits, or the quantised range is no wider.
        assert low == 0 or layer.clamp[0] == -128
    # auto_pad SAME_UPPER of 5 x 5 with stride 2.
    assert (convs[4].pads, convs[4].strides) == ((1, 1, 1, 1), (2, 2))


def _macs():
    """By hand: the stem, the inverted residual, the strided convolution, the product."""
    return (
        12 * 27 * 81 + 24 * 12 * 81 + 24 * 9 * 81 + 12 * 24 * 81 + 17 * 12 * 9 * 9 + 17 * 10
    )  # fmt: skip
