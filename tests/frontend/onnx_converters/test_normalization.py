"""Normalisations against ONNX Runtime (RMSNormalization against ONNX's reference)."""

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from tvm_ext.errors import ModelError
from tvm_ext.frontend import load_model

from ..cases import Case, Cases, call, calls, compile_functions, normal

X = normal(2, 6, 5, 3)
SCALE, SHIFT = normal(6, seed=1), normal(6, seed=2)
MEAN, VARIANCE = normal(6, seed=3), np.abs(normal(6, seed=4)) + 0.1
BATCH = [X, SCALE, SHIFT, MEAN, VARIANCE]

CASES = Cases(
    [
        *[Case(f"batch_opset{v}", "BatchNormalization", BATCH, opset=v) for v in (7, 9, 14, 15)],
        Case("batch_2d", "BatchNormalization", [normal(4, 6), *BATCH[1:]], {"epsilon": 0.01}),
        Case("instance", "InstanceNormalization", [X, SCALE, SHIFT], {"epsilon": 0.001}),
        Case("instance_1d", "InstanceNormalization", [normal(2, 6, 9), SCALE, SHIFT]),
        Case("layer", "LayerNormalization", [X, normal(3), normal(3, seed=1)]),
        Case("layer_no_shift", "LayerNormalization", [X, normal(5, 3)], {"axis": 2}),
        Case(
            "layer_axis1", "LayerNormalization", [X, normal(6, 5, 3), normal(6, 5, 3)], {"axis": 1}
        ),
        Case("layer_outputs", "LayerNormalization", [X, normal(5, 3)], {"axis": -2}, outputs=3),
        Case("group18", "GroupNormalization", [X, SCALE[:3], SHIFT[:3]], {"num_groups": 3}),
        Case("group21", "GroupNormalization", [X, SCALE, SHIFT], {"num_groups": 3}, opset=21),
        Case("lrn", "LRN", [X], {"size": 3, "alpha": 0.3, "beta": 0.6, "bias": 1.5}),
        Case("lrn_wide", "LRN", [X], {"size": 9, "alpha": 0.3}),
        Case("lp1", "LpNormalization", [X], {"p": 1, "axis": 1}),
        Case("lp2", "LpNormalization", [X], {"p": 2}),
        Case("mean_variance", "MeanVarianceNormalization", [X], {"axes": [0, 2, 3]}),
    ]
)


@pytest.mark.parametrize("name", CASES.cases)
def test_matches_onnxruntime(name):
    CASES.check(name)


@pytest.mark.parametrize(
    ("name", "operators"),
    [
        ("batch_opset15", ["relax.nn.batch_norm"]),
        ("layer_no_shift", ["relax.nn.layer_norm"]),
        (
            "lrn",
            [
                f"relax.{name}"
                for name in ("multiply", "nn.avg_pool2d", "multiply", "add", "power", "divide")
            ],
        ),
    ],
)
def test_is_the_relax_operator(name, operators):
    assert calls(load_model(CASES.cases[name].model())) == operators


def test_lp_normalization_of_zeros_is_zero():
    case = Case("zeros", "LpNormalization", [np.zeros((2, 3), "float32")], opset=22)
    vm = compile_functions({"f": load_model(case.model())["main"]})
    np.testing.assert_array_equal(call(vm, "f", case.inputs[0])[0], case.inputs[0])


@pytest.mark.parametrize("shape", [(2, 6), (2, 6, 5), X.shape, (2, 6, 2, 3, 4), (1, 6, 2, 1, 3, 2)])
@pytest.mark.parametrize("size", [3, 4])
def test_lrn_matches_the_definition(shape, size):
    # ONNX Runtime takes odd sizes of images only. Of 4 channels, 1 lies before and 2 behind the own
    # one.
    x = normal(*shape)
    case = Case("lrn", "LRN", [x], {"size": size, "alpha": 0.3, "beta": 0.6, "bias": 1.5})
    (got,) = call(compile_functions({"f": load_model(case.model())["main"]}), "f", x)
    x = x.astype("float64")
    sums = [(x[:, max(c - 1, 0) : c - 1 + size] ** 2).sum(axis=1) for c in range(6)]
    wanted = x / (1.5 + 0.3 / size * np.stack(sums, axis=1)) ** 0.6
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("axis", "dtype", "tolerance"),
    [(-1, "float32", 1e-5), (1, "float32", 1e-5), (1, "float64", 1e-12), (-1, "float16", 2e-3)],
)
def test_rms_normalization_matches_the_reference(axis, dtype, tolerance):
    x, scale = normal(2, 4, 5, dtype=dtype), normal(*(2, 4, 5)[axis:], dtype=dtype)
    case = Case("rms", "RMSNormalization", [x, scale], {"axis": axis, "epsilon": 0.1}, opset=23)
    (wanted,) = ReferenceEvaluator(case.model()).run(None, case.feeds())
    module = load_model(case.model())
    assert (calls(module) == ["relax.nn.rms_norm"]) == (dtype != "float64")
    (got,) = call(compile_functions({"f": module["main"]}), "f", x)
    assert got.dtype == dtype
    np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance / 10)


def test_rms_normalization_of_one_scale_for_all():
    x = normal(2, 4, 5)
    case = Case("rms", "RMSNormalization", [x, normal(1)], {"axis": 1}, opset=23)
    (wanted,) = ReferenceEvaluator(case.model()).run(None, case.feeds())
    (got,) = call(compile_functions({"f": load_model(case.model())["main"]}), "f", x)
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def test_training_mode_is_refused():
    case = Case("training", "BatchNormalization", BATCH, {"training_mode": 1}, outputs=3)
    with pytest.raises(ModelError, match="training_mode=1: export the model for inference"):
        load_model(case.model())
