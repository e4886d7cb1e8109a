"""Element-wise operators against ONNX Runtime, ours and those that TVM's importer gets right."""

import numpy as np
import pytest

from tvm_ext.errors import ModelError
from tvm_ext.frontend import load_model

from ..cases import Case, Cases, calls, normal

X = normal(2, 3, 5, 4) * 3
INTS = np.array([[-7, 0, 3], [2, -1, 9]], "int32")
SPECIAL = np.array([np.inf, -np.inf, np.nan, 1.0], "float32")
LOW, HIGH = np.array(-0.5, "float32"), np.array(0.75, "float32")

CASES = Cases(
    [
        Case("clip", "Clip", [X, LOW, HIGH]),
        Case("clip_low", "Clip", [X, LOW]),
        Case("clip_high", "Clip", [X, None, HIGH]),
        Case("clip_unbounded", "Clip", [X]),
        Case("clip_opset6", "Clip", [X], {"min": -1.0, "max": 6.0}, opset=6),
        Case("clip_opset6_max", "Clip", [X], {"max": 1.0}, opset=6),
        Case("clip_bounds_at_run_time", "Clip", [X, LOW, HIGH], runtime=(0, 1, 2)),
        Case("clip_int", "Clip", [INTS, np.array(-2, "int32"), np.array(5, "int32")]),
        Case("clip_crossed", "Clip", [X, HIGH, LOW]),
        Case("prelu_scalar", "PRelu", [X, np.array([0.2], "float32")]),
        Case("prelu_channels", "PRelu", [X, normal(3, 1, 1)]),
        Case("prelu_last", "PRelu", [X, normal(4)]),
        Case("prelu_plane", "PRelu", [X, normal(5, 4)]),
        Case("prelu_full", "PRelu", [X, normal(2, 3, 5, 4, seed=1)]),
        Case("prelu_at_run_time", "PRelu", [X, normal(3, 1, 1)], runtime=(0, 1)),
        Case("leaky", "LeakyRelu", [X], {"alpha": 0.3}),
        Case("elu", "Elu", [X], {"alpha": 1.5}),
        Case("celu", "Celu", [X], {"alpha": 1.5}),
        Case("selu", "Selu", [X]),
        Case("gelu", "Gelu", [X], opset=20),
        Case("gelu_tanh", "Gelu", [X], {"approximate": "tanh"}, opset=20, rtol=1e-4),
        Case("hard_swish", "HardSwish", [X]),
        Case("hard_sigmoid", "HardSigmoid", [X], {"alpha": 0.3, "beta": 0.4}),
        Case("mish", "Mish", [X]),
        Case("softplus", "Softplus", [X]),
        Case("dropout", "Dropout", [X], opset=13),
        Case("dropout_mask", "Dropout", [X, np.array(0.3, "float32")], opset=13, outputs=2),
        Case("dropout_opset7", "Dropout", [X], {"ratio": 0.3}, opset=7),
        Case("pow_square", "Pow", [X, np.array(2, "float32")]),
        Case("pow_int_exponent", "Pow", [X, np.array([3], "int64")]),
        Case("pow_tensor", "Pow", [np.abs(X), normal(5, 1)], rtol=1e-4),
        Case("pow_integers", "Pow", [INTS, np.array(3, "int32")]),
        Case("is_inf", "IsInf", [SPECIAL]),
        Case("is_inf_positive", "IsInf", [SPECIAL], {"detect_negative": 0}),
        Case("is_inf_negative", "IsInf", [SPECIAL], {"detect_positive": 0}),
        Case("softmax_opset11", "Softmax", [X], {"axis": 1}, opset=11),
        Case("softmax_opset13", "Softmax", [X], {"axis": 1}, opset=13),
        Case("log_softmax_opset11", "LogSoftmax", [X], {"axis": 2}, opset=11),
        Case("where", "Where", [X > 0, X, normal(5, 1)]),
        Case("mod", "Mod", [INTS, np.array(4, "int32")]),
        Case("round_half_even", "Round", [np.array([-1.5, -0.5, 0.5, 1.5, 2.5], "float32")]),
    ]
)


@pytest.mark.parametrize("name", CASES.cases)
def test_matches_onnxruntime(name):
    CASES.check(name)


@pytest.mark.parametrize(
    ("name", "operators"),
    [
        ("clip", ["relax.clip"]),
        ("clip_opset6", ["relax.clip"]),
        ("prelu_scalar", ["relax.nn.leakyrelu"]),
        ("prelu_channels", ["relax.nn.prelu"]),
        ("dropout", []),
        ("pow_square", ["relax.multiply"]),
    ],
)
def test_is_the_relax_operator(name, operators):
    assert calls(load_model(CASES.cases[name].model())) == operators


def test_dropout_in_training_is_refused():
    case = Case("training", "Dropout", [X, np.array(0.5, "float32"), np.array(True)])
    with pytest.raises(ModelError, match="training_mode must be constant false"):
        load_model(case.model())
