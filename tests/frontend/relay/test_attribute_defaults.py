"""The tables of attributes, and completing a file's with them."""

import math

import pytest

from tvm_ext.frontend.relay.attribute_defaults import (
    complete_attributes,
    operator_schema,
    record_schema,
)
from tvm_ext.frontend.relay.attribute_records_image import IMAGE_RECORDS
from tvm_ext.frontend.relay.attribute_records_nn import NN_RECORDS
from tvm_ext.frontend.relay.attribute_records_tensor import TENSOR_RECORDS
from tvm_ext.frontend.relay.attribute_schema import Schema, parse_schemas

SCHEMAS = [s for t in (NN_RECORDS, TENSOR_RECORDS, IMAGE_RECORDS) for s in parse_schemas(t)]


def test_no_record_and_no_operator_stands_twice():
    names = [schema.name for schema in SCHEMAS]
    operators = [operator for schema in SCHEMAS for operator in schema.operators]
    assert len(set(names)) == len(names)
    assert len(set(operators)) == len(operators)


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda s: s.name)
def test_defaults_have_the_type_of_their_kind(schema):
    types = {"int": int, "float": float, "bool": bool, "str": str, "dtype": str}
    for name, default in schema.defaults.items():
        kind = schema.kinds[name]
        if kind in types:
            assert type(default) is types[kind], name
        else:
            assert default is None or isinstance(default, bool | int | float | list), name
    assert set(schema.defaults) <= set(schema.kinds)


# Written down from Relay's documentation of its operators.
@pytest.mark.parametrize(
    ("operator", "name", "default"),
    [
        ("nn.conv1d", "data_layout", "NCW"),
        ("nn.conv2d", "groups", 1),
        ("nn.conv2d", "channels", None),
        ("qnn.conv2d", "kernel_layout", "OIHW"),
        ("nn.contrib_conv2d_NCHWc", "strides", [1, 1]),
        ("nn.conv2d_transpose", "kernel_layout", "IOHW"),
        ("nn.conv3d", "padding", [0, 0, 0]),
        ("nn.dense", "out_dtype", ""),
        ("nn.batch_matmul", "transpose_b", False),
        ("nn.avg_pool2d", "count_include_pad", False),
        ("nn.max_pool2d", "ceil_mode", False),
        ("nn.batch_norm", "epsilon", 1e-5),
        ("nn.bias_add", "axis", 1),
        ("nn.softmax", "axis", -1),
        ("nn.lrn", "size", 5),
        ("nn.pad", "pad_mode", "constant"),
        ("nn.upsampling", "method", "nearest_neighbor"),
        ("nn.dropout", "rate", 0.5),
        ("nn.leaky_relu", "alpha", 0.25),
        ("sum", "keepdims", False),
        ("argmax", "select_last_index", False),
        ("concatenate", "axis", 0),
        ("qnn.concatenate", "axis", 0),
        ("take", "mode", "clip"),
        ("topk", "ret_type", "both"),
        ("strided_slice", "slice_mode", "end"),
        ("one_hot", "depth", 1),
        ("image.resize2d", "coordinate_transformation_mode", "half_pixel"),
        ("vision.non_max_suppression", "coord_start", 2),
        ("qnn.requantize", "rounding", "UPWARD"),
        ("qnn.add", "lhs_axis", -1),
    ],
)
def test_defaults_of_operators(operator, name, default):
    schema = operator_schema(operator)
    assert schema is not None
    assert schema.defaults[name] == default


def test_operators_and_records_that_arent_there():
    assert operator_schema("nn.relu") is None
    assert record_schema("relay.attrs.NoSuchAttrs") is None
    record = record_schema("relay.attrs.Conv2DAttrs")
    assert record is operator_schema("nn.conv2d")


def test_completing_fills_in_keeps_and_tells_what_is_missing():
    schema = Schema("Some", (), {"a": "int", "b": "node", "c": "float"}, {"b": [1]})
    complete, missing = complete_attributes(schema, {"c": 2, "other": [3]})
    assert complete == {"b": [1], "c": 2.0, "other": [3]}
    assert isinstance(complete["c"], float)
    assert missing == ["a"]
    complete["b"].append(2)
    assert complete_attributes(schema, {"a": 1, "c": 0.5})[0] == {"a": 1, "b": [1], "c": 0.5}


def test_numbers_take_the_type_of_their_kind():
    schema = Schema("Some", (), {"flag": "bool", "limit": "float"})
    complete, _ = complete_attributes(schema, {"flag": 1, "limit": -math.inf})
    assert complete == {"flag": True, "limit": -math.inf}
    assert complete["flag"] is True


def test_a_table_with_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="A: the kind 'long' isn't one of"):
        list(parse_schemas("A: op\n    long x=1\n"))
