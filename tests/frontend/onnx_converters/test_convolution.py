"""Conv and ConvTranspose against ONNX Runtime, and the form they take in Relax."""

import numpy as np
import pytest
import tvm
from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.frontend import load_model

from ..cases import Case, Cases, calls, normal

X1, X2, X3 = normal(2, 4, 11), normal(2, 4, 9, 7), normal(1, 2, 5, 6, 7)
BIAS = normal(6, seed=2)


def conv(name, x, kernel, groups=1, bias=BIAS, **attrs):
    weight = normal(6, x.shape[1] // groups, *kernel, seed=1)
    attrs = {"group": groups, **attrs} if groups > 1 else attrs
    return Case(name, "Conv", [x, weight, bias], attrs)


def transposed(name, x, kernel, groups=1, bias=BIAS, **attrs):
    weight = normal(x.shape[1], 6 // groups, *kernel, seed=1)
    attrs = {"group": groups, **attrs} if groups > 1 else attrs
    return Case(name, "ConvTranspose", [x, weight, bias], attrs)


CASES = Cases(
    [
        conv("conv1d", X1, [3], strides=[2], pads=[1, 2]),
        conv("conv1d_grouped_dilated", X1, [3], groups=2, dilations=[2]),
        conv("conv2d", X2, [3, 2], bias=None),
        conv("conv2d_bias_pads", X2, [3, 2], pads=[1, 0, 2, 1], strides=[2, 1]),
        conv("conv2d_grouped", X2, [3, 3], groups=2, pads=[1, 1, 1, 1]),
        conv("conv2d_dilated", X2, [2, 3], dilations=[3, 2]),
        conv("conv2d_same_upper", X2, [2, 3], strides=[2, 3], auto_pad="SAME_UPPER"),
        conv("conv2d_same_lower", X2, [2, 4], strides=[2, 1], auto_pad="SAME_LOWER"),
        conv("conv2d_valid", X2, [3, 3], auto_pad="VALID"),
        conv("conv2d_same_wide_stride", X2, [1, 2], strides=[3, 4], auto_pad="SAME_UPPER"),
        conv("conv3d", X3, [2, 3, 1], strides=[1, 2, 2], pads=[1, 0, 1, 0, 2, 0]),
        Case("depthwise", "Conv", [X2, normal(8, 1, 3, 3, seed=1)], {"group": 4}),
        Case("weights_at_run_time", "Conv", [X2, normal(6, 4, 3, 3), BIAS], runtime=(0, 1, 2)),
        transposed("transpose1d", X1, [3], strides=[2], pads=[1, 0]),
        transposed("transpose2d", X2, [3, 2], strides=[2, 3], pads=[1, 0, 0, 1]),
        transposed("transpose2d_output_padding", X2, [3, 3], strides=[2, 3], output_padding=[1, 2]),
        transposed("transpose2d_dilated", X2, [3, 2], dilations=[2, 3], strides=[2, 1]),
        transposed("transpose2d_grouped", X2, [3, 3], groups=2, strides=[2, 2]),
        transposed("transpose2d_output_shape", X2, [3, 3], strides=[2, 2], output_shape=[18, 14]),
        transposed(
            "transpose2d_output_shape_large", X2, [3, 3], strides=[3, 2], output_shape=[28, 16]
        ),
        transposed("transpose2d_same_upper", X2, [3, 4], strides=[2, 3], auto_pad="SAME_UPPER"),
        transposed("transpose2d_same_lower", X2, [3, 4], strides=[2, 3], auto_pad="SAME_LOWER"),
        transposed("transpose3d", X3, [2, 2, 3], strides=[1, 2, 1], bias=None),
    ]
)


@pytest.mark.parametrize("name", CASES.cases)
def test_matches_onnxruntime(name):
    CASES.check(name)


@pytest.mark.parametrize(
    "name", ["conv1d", "conv2d_same_upper", "conv3d", "transpose2d_same_lower"]
)
def test_is_one_convolution_and_one_add_of_a_constant(name):
    module = load_model(CASES.cases[name].model())
    rank = len(CASES.cases[name].inputs[0].shape)
    suffix = "_transpose" if name.startswith("transpose") else ""
    assert calls(module) == [f"relax.nn.conv{rank - 2}d{suffix}", "relax.add"]
    add = module["main"].body.blocks[0].bindings[-1].value
    bias = add.args[1]
    assert isinstance(bias, tvm.ir.GenericConst)
    assert bias.value.shape == (1, 6) + (1,) * (rank - 2)
    np.testing.assert_array_equal(bias.value.numpy().reshape(-1), BIAS)


def test_auto_pad_becomes_padding_attributes():
    module = load_model(CASES.cases["conv2d_same_lower"].model())
    call = module["main"].body.blocks[0].bindings[0].value
    assert isinstance(call, relax.Call)
    # 9 rows, kernel 2, stride 2: 5 outputs need 1 more row; 7 columns, kernel 4, stride 1: 3 more.
    assert [int(p) for p in call.attrs.padding] == [1, 2, 0, 1]


def test_bad_auto_pad_names_the_allowed_values():
    case = Case("bad", "Conv", [X2, normal(6, 4, 3, 3)], {"auto_pad": "SAME"})
    with pytest.raises(ModelError, match=r"node 'node' \(Conv\).*NOTSET, VALID, SAME_UPPER"):
        load_model(case.model())


def test_four_spatial_dimensions_are_refused():
    case = Case("4d", "Conv", [normal(1, 1, 2, 2, 2, 2), normal(1, 1, 1, 1, 1, 1)])
    with pytest.raises(ModelError, match="4 spatial dimensions; 1, 2 and 3"):
        load_model(case.model())
