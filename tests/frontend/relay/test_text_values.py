"""Types, literals and values of attributes in the text form."""

import numpy as np
import pytest

from tvm_ext.frontend.relay.ast import Constant, TensorType, TupleType

from .graphs import metadata
from .test_text import HEADER, body_of, main_of


@pytest.mark.parametrize(
    ("text", "value", "dtype"),
    [
        ("1", 1, "int32"),
        ("-7", -7, "int32"),
        ("3000000000", 3_000_000_000, "int64"),
        ("2i64", 2, "int64"),
        ("-2i16", -2, "int16"),
        ("5 /* ty=int64 */", 5, "int64"),
        ("1f", 1.0, "float32"),
        ("-1.5e-3f", -1.5e-3, "float32"),
        ("1e+10f", 1e10, "float32"),
        ("0.1f64", 0.1, "float64"),
        ("0.5f16 /* ty=float16 */", 0.5, "float16"),
        ("inff", np.inf, "float32"),
        ("-inff64", -np.inf, "float64"),
        ("1e40f", np.inf, "float32"),
        ("nanf", np.nan, "float32"),
        ("True", True, "bool"),
        ("False /* ty=bool */", False, "bool"),
    ],
)
def test_literals(text, value, dtype):
    constant = body_of(text)
    assert isinstance(constant, Constant)
    np.testing.assert_array_equal(constant.data, np.array(value, dtype), strict=True)


def test_values_of_attributes():
    call = body_of(
        'my.op(%x, a=1, b=-2i64, c=0.25f, d="s/\\n\\303\\251", e=[1, [2f, "t"]], f=None, g=True, '
        "h=float32, i=[], j={\"k\"=1, l='m'}, n=VirtualDevice(device_type=1, target=Target(a)), "
        "o=?, p=(1, 2), q=-inff)",
        "%x",
    )
    assert call.attrs == {
        "a": 1,
        "b": -2,
        "c": 0.25,
        "d": "s/\né",
        "e": [1, [2.0, "t"]],
        "f": None,
        "g": True,
        "h": "float32",
        "i": [],
        "j": {"k": 1, "l": "m"},
        "n": "<VirtualDevice>",
        "o": "?",
        "p": [1, 2],
        "q": -np.inf,
    }


def test_defaults_are_filled_in():
    assert body_of("nn.softmax(%x)", "%x").attrs == {"axis": -1}
    assert body_of("clip(%x, a_min=0, a_max=6f)", "%x").attrs == {"a_min": 0.0, "a_max": 6.0}
    assert body_of("qnn.requantize(%x, %x, %x, %x, %x)", "%x").attrs == {
        "axis": -1,
        "rounding": "UPWARD",
        "compute_dtype": "None",
        "out_dtype": "",
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Tensor[(1, 3, ?, 2i64), uint8]", TensorType((1, 3, "?", 2), "uint8")),
        ("Tensor[(5), bool]", TensorType((5,), "bool")),
        ("Tensor[(), float32]", TensorType((), "float32")),
        ("Tensor[(n, 2), int]", TensorType(("n", 2), "int32")),
        ("Tensor[(meta[tir.Var][0], 2), int8]", TensorType(("tir.Var_0", 2), "int8")),
        ("Tensor[(meta[tir.Any][0], 2), int8]", TensorType(("?", 2), "int8")),
        ("bfloat16", TensorType((), "bfloat16")),
        (
            "(Tensor[(2), float32], (int8,))",
            TupleType((TensorType((2,), "float32"), TupleType((TensorType((), "int8"),)))),
        ),
        ("()", TupleType(())),
        ("fn (Tensor[(2), float32], int8) -> (int8, int8)", None),
        ("meta[IncompleteType][0]", None),
        ("_", None),
    ],
)
def test_types(text, expected):
    main = main_of(f"{HEADER}def @main(%x: {text} /* ty={text} */, %y) {{ %x }}")
    assert main.params[0].type == expected


def test_devices_are_gone_past():
    text = (
        "def @main(%x {virtual_device=VirtualDevice(device_type=1)}: int8, "
        "virtual_device=meta[VirtualDevice][0]) { %x }"
    )
    main = main_of(HEADER + text)
    assert main.params[0].type == TensorType((), "int8")
    assert main.attrs == {}


def test_metadata_of_dimensions_records_and_numbers():
    text = """def @main(%x: Tensor[(meta[tir.SizeVar][0], 2), float32]) {
      %0 = cumsum(%x, meta[relay.attrs.ScanopAttrs][0]);
      split(%0, indices_or_sections=meta[runtime.BoxInt][1])
    }
    """

    def scan(graph):
        return [graph.record("ScanopAttrs", axis=graph.integer(1), exclusive=0, dtype="int64")]

    section = metadata(
        {
            "tir.SizeVar": lambda g: [g.add("tir.SizeVar", name=g.string("batch"))],
            "relay.attrs.ScanopAttrs": scan,
            "runtime.BoxInt": lambda g: [g.add("runtime.BoxInt", str(i)) for i in (4, 2)],
        }
    )
    main = main_of(HEADER + text + section)
    assert main.params[0].type.shape == ("batch", 2)
    assert main.body.attrs["indices_or_sections"] == 2
    assert main.body.args[0].attrs == {"axis": 1, "exclusive": None, "dtype": "int64"}
