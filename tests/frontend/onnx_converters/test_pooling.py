"""Pools against ONNX Runtime: every mixture of padding, dilation and rounding."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator

from tvm_ext.errors import ModelError
from tvm_ext.frontend import load_model

from ..cases import Case, Cases, call, calls, compile_functions, normal, run_onnxruntime

X1, X2, X3 = normal(2, 3, 13), normal(2, 3, 11, 8), normal(1, 2, 6, 5, 7)


def pools(name, x, **attrs):
    return [
        Case(f"max_{name}", "MaxPool", [x], attrs),
        Case(f"average_{name}", "AveragePool", [x], attrs, opset=19),
        Case(f"average_counting_{name}", "AveragePool", [x], attrs | {"count_include_pad": 1}, 19),
    ]


CASES = Cases(
    [
        *pools("1d", X1, kernel_shape=[4], strides=[3], pads=[2, 1]),
        *pools("1d_ceil", X1, kernel_shape=[4], strides=[3], pads=[1, 1], ceil_mode=1),
        *pools("2d", X2, kernel_shape=[3, 2], strides=[2, 2]),
        *pools("2d_pads", X2, kernel_shape=[3, 3], pads=[1, 0, 2, 1], strides=[2, 1]),
        *pools("2d_ceil", X2, kernel_shape=[3, 3], strides=[3, 2], ceil_mode=1),
        *pools(
            "2d_ceil_pads", X2, kernel_shape=[2, 3], strides=[2, 3], pads=[1, 1, 1, 1], ceil_mode=1
        ),
        *pools("2d_dilated", X2, kernel_shape=[3, 2], dilations=[2, 3], strides=[1, 2]),
        *pools("2d_same_upper", X2, kernel_shape=[2, 3], strides=[2, 3], auto_pad="SAME_UPPER"),
        *pools("2d_same_lower", X2, kernel_shape=[4, 3], strides=[3, 2], auto_pad="SAME_LOWER"),
        *pools("3d", X3, kernel_shape=[2, 3, 2], strides=[1, 2, 3], pads=[0, 1, 1, 1, 0, 1]),
        Case("lp2", "LpPool", [X2], {"kernel_shape": [3, 2], "strides": [2, 1]}),
        Case("lp1", "LpPool", [X2], {"kernel_shape": [3, 2], "p": 1}),
        Case("lp3", "LpPool", [X1], {"kernel_shape": [3], "p": 3, "pads": [1, 1]}),
        *[
            Case(f"{op}_{x.ndim - 2}d", op, [x])
            for op in ("GlobalAveragePool", "GlobalMaxPool")
            for x in (X1, X2, X3)
        ],
        Case("GlobalLpPool", "GlobalLpPool", [X2], {"p": 3}),
        Case(
            "max_uint8",
            "MaxPool",
            [np.random.default_rng(0).integers(0, 255, (1, 2, 5, 6), "uint8")],
            {"kernel_shape": [2, 2], "pads": [1, 1, 0, 0]},
        ),
    ]
)


@pytest.mark.parametrize("name", CASES.cases)
def test_matches_onnxruntime(name):
    CASES.check(name)


@pytest.mark.parametrize(
    ("name", "operators"),
    [
        ("max_2d_ceil_pads", ["relax.nn.max_pool2d"]),
        ("average_2d_same_upper", ["relax.nn.avg_pool2d"]),
        ("average_1d_ceil", ["relax.nn.avg_pool1d"]),
        ("average_counting_1d_ceil", ["relax.nn.pad", "relax.nn.avg_pool1d"]),
        ("GlobalAveragePool_3d", ["relax.nn.avg_pool3d"]),
        ("GlobalMaxPool_2d", ["relax.nn.max_pool2d"]),
    ],
)
def test_is_a_relax_pool(name, operators):
    assert calls(load_model(CASES.cases[name].model())) == operators


def test_max_pool_indices_are_refused():
    case = Case("indices", "MaxPool", [X2], {"kernel_shape": [2, 2]}, outputs=2)
    with pytest.raises(ModelError, match="output 'Indices' isn't supported"):
        load_model(case.model())


@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    op=st.sampled_from(["MaxPool", "AveragePool"]),
    size=st.tuples(st.integers(5, 9), st.integers(5, 9)),
    kernel=st.tuples(st.integers(2, 4), st.integers(2, 4)),
    strides=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    pads=st.tuples(*[st.integers(0, 1)] * 4),
    ceil=st.booleans(),
    counting=st.booleans(),
)
def test_any_window_matches(op, size, kernel, strides, pads, ceil, counting):
    attrs = {"kernel_shape": kernel, "strides": strides, "pads": pads, "ceil_mode": int(ceil)}
    if op == "AveragePool":
        attrs["count_include_pad"] = int(counting)
    case = Case("any", op, [normal(1, 2, *size)], attrs, opset=19)
    (wanted,) = run_onnxruntime(case.model(), case.feeds())
    vm = compile_functions({"any": load_model(case.model())["main"]})
    (got,) = call(vm, "any", *case.feeds().values())
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def test_reference_agrees_on_windows_behind_the_padding():
    # A hand-worked case: 5 values, kernel 3, stride 3, begin pad 1, end pad 1, rounding up.
    # The windows are [pad 0 1], [2 3 4]; a third would start at position 5, behind the data.
    case = Case(
        "behind",
        "AveragePool",
        [np.arange(5, dtype="float32").reshape(1, 1, 5)],
        {"kernel_shape": [3], "strides": [3], "pads": [1, 1], "ceil_mode": 1},
        opset=19,
    )
    module = load_model(case.model())
    (got,) = call(compile_functions({"f": module["main"]}), "f", case.inputs[0])
    np.testing.assert_allclose(got, [[[0.5, 3.0]]])
    (wanted,) = ReferenceEvaluator(case.model()).run(None, case.feeds())
    np.testing.assert_allclose(got, wanted)
