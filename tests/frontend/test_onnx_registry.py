"""Users' own converters."""

import numpy as np
import pytest
from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.frontend import load_model, onnx_registry, register_onnx_converter

from .cases import Case, call, calls, compile_functions, normal

X = normal(2, 3)


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    """Forget afterwards what a test registers."""
    monkeypatch.setattr(onnx_registry, "_CONVERTERS", dict(onnx_registry._CONVERTERS))


def test_custom_operator_gets_inputs_attributes_and_node():
    seen = {}

    @register_onnx_converter("Scale", domain="com.example")
    def convert(bb, inputs, attrs, node):
        seen.update(attrs=attrs, node=node, missing=inputs[1])
        return [relax.op.multiply(inputs[0], relax.const(attrs["factor"], "float32")), inputs[2]]

    case = Case(
        "scale",
        "Scale",
        [X, None, normal(3)],
        {"factor": 2.5, "mode": "fast", "sizes": [1, 2], "table": None},
        domain="com.example",
        outputs=2,
    )
    del case.attrs["table"]
    vm = compile_functions({"f": load_model(case.model())["main"]})
    scaled, constant = call(vm, "f", X)
    np.testing.assert_allclose(scaled, X * 2.5, rtol=1e-6)
    np.testing.assert_array_equal(constant, normal(3))
    assert seen["attrs"] == {"factor": 2.5, "mode": "fast", "sizes": (1, 2)}
    assert seen["missing"] is None
    node = seen["node"]
    assert (node.name, node.op_type, node.domain, node.opset) == ("node", "Scale", "com.example", 1)
    assert node.outputs == ("o0", "o1")


def test_registered_converter_replaces_the_built_in_one():
    register_onnx_converter(
        "Relu", converter=lambda bb, inputs, attrs, node: relax.op.tanh(inputs[0])
    )
    assert calls(load_model(Case("relu", "Relu", [X]).model())) == ["relax.tanh"]


def test_exception_in_a_converter_names_the_node():
    @register_onnx_converter("Relu", "ai.onnx")
    def convert(bb, inputs, attrs, node):
        raise KeyError("lost")

    with pytest.raises(ModelError, match=r"node 'node' \(Relu\) can't be converted: 'lost'"):
        load_model(Case("relu", "Relu", [X]).model())


def test_too_few_results_are_refused():
    register_onnx_converter("Split", converter=lambda bb, inputs, attrs, node: inputs[0])
    case = Case("split", "Split", [X], {"num_outputs": 2}, outputs=2)
    with pytest.raises(ModelError, match="the converter returned 1 of 2 outputs"):
        load_model(case.model())


@pytest.mark.parametrize("op", ["NonMaxSuppression", "Unique", "Attention"])
def test_tvm_converters_that_mislead_are_not_used(op):
    assert onnx_registry.find_tvm_converter(op, "") is None


def test_microsoft_operators_are_found_in_their_domain_only():
    assert onnx_registry.is_supported("FastGelu", "com.microsoft")
    assert not onnx_registry.is_supported("FastGelu", "")
    assert not onnx_registry.is_supported("Conv", "com.microsoft")


def test_wrong_attribute_of_a_tvm_converter_is_refused():
    inputs = [normal(1, 1, 5, 5), np.array([[0, 0, 3, 3]], "float32"), np.array([0])]
    case = Case("roi", "RoiAlign", inputs, {"mode": "max"})
    with pytest.raises(ModelError, match="mode=max isn't supported"):
        load_model(case.model())


def test_tvms_own_importer_is_left_alone():
    before = onnx_registry.find_tvm_converter("Relu", "")
    register_onnx_converter("Relu", "", lambda bb, inputs, attrs, node: relax.op.abs(inputs[0]))
    assert onnx_registry.find_tvm_converter("Relu", "") is before


def test_a_result_without_a_static_shape_is_refused():
    register_onnx_converter(
        "Relu", converter=lambda bb, inputs, attrs, node: relax.op.nonzero(inputs[0])
    )
    with pytest.raises(ModelError, match=r"'node' \(Relu\): the result's shape isn't"):
        load_model(Case("relu", "Relu", [X]).model())


def test_an_output_that_is_not_wanted_is_not_computed():
    @register_onnx_converter("Pair", domain="com.example")
    def convert(bb, inputs, attrs, node):
        return [relax.op.abs(inputs[0]), relax.op.exp(inputs[0])]

    model = Case("pair", "Pair", [X], domain="com.example").model()
    model.graph.node[0].output[:] = ["", "o0"]
    assert calls(load_model(model)) == ["relax.exp"]
