"""Attributes in graphs of several versions as plain data."""

import pytest

from .graphs import SavedGraph
from .test_json_graph import main_of, one_call


@pytest.mark.parametrize(
    ("version", "written", "read"),
    [("0.8.0", "OIW", "IOW"), ("0.11.1", "WIO", "WOI"), ("0.12.0", "IOW", "IOW")],
)
def test_kernels_of_transposed_convolutions_have_the_names_of_today(version, written, read):
    graph = SavedGraph(version)
    record = graph.record("Conv1DTransposeAttrs", channels=0, kernel_layout=written)
    call = one_call(graph, "nn.conv1d_transpose", record, [(1, 2, 8), (2, 3, 4)])
    assert call.attrs["kernel_layout"] == read
    assert call.attrs["channels"] is None


def test_attributes_that_a_version_lacked_have_their_defaults():
    graph = SavedGraph("0.8.0")
    old = one_call(graph, "qnn.dequantize", graph.record("DequantizeAttrs", axis=-1), [()] * 3)
    assert old.attrs == {"axis": -1, "out_dtype": "float32"}
    assert one_call(SavedGraph("0.8.0"), "qnn.add", 0, [()] * 8).attrs == {
        "lhs_axis": -1,
        "rhs_axis": -1,
    }


@pytest.mark.parametrize("written", ["None", "UPWARD"])
def test_the_default_rounding_has_one_name(written):
    graph = SavedGraph()
    record = graph.record("RequantizeAttrs", axis=-1, rounding=written, out_dtype="int8")
    call = one_call(graph, "qnn.requantize", record, [()] * 5)
    assert call.attrs == {
        "axis": -1,
        "rounding": "UPWARD",
        "compute_dtype": "None",
        "out_dtype": "int8",
    }


def test_values_of_attributes_are_plain_data():
    graph = SavedGraph("0.19.0")
    exclusive = graph.integer(1, "bool")
    record = graph.record("ScanopAttrs", axis=graph.integer(2), exclusive=exclusive, dtype="uint1")
    scan = one_call(graph, "cumsum", record)
    assert scan.attrs == {"axis": 2, "exclusive": True, "dtype": "bool"}

    graph = SavedGraph("0.19.0")
    indices = graph.array([graph.box(1), graph.box(3)])
    record = graph.record("SplitAttrs", indices_or_sections=indices, axis=1)
    assert one_call(graph, "split", record).attrs["indices_or_sections"] == [1, 3]

    graph = SavedGraph()
    width = graph.array([graph.integers(0, 0), graph.integers(1, 2)])
    record = graph.record("PadAttrs", pad_width=width, pad_mode=graph.string("edge"))
    assert one_call(graph, "nn.pad", record).attrs == {
        "pad_width": [[0, 0], [1, 2]],
        "pad_mode": "edge",
    }

    graph = SavedGraph()
    size = graph.add("FloatImm", dtype="float32", value="0.25")
    record = graph.record("MultiBoxPriorAttrs", sizes=graph.array([size]), clip=1)
    prior = one_call(graph, "vision.multibox_prior", record).attrs
    assert prior["sizes"] == [0.25]
    assert prior["ratios"] == [1.0]
    assert prior["clip"] is True


def test_attributes_of_functions_are_plain_data():
    graph = SavedGraph("0.19.0")
    x = graph.var("x")
    attrs = {
        "Primitive": graph.add("runtime.BoxInt", "1"),
        "Inline": graph.add("runtime.BoxBool", "true"),
        "scale": graph.add("runtime.BoxFloat", "0.5"),
        "Compiler": graph.string("dnnl"),
        "target": graph.add("Target"),
        "sizes": graph.map({"a": graph.integers(1, 2)}),
    }
    main = main_of(graph.save(graph.function([x], x, 0, attrs)))
    assert main.attrs == {
        "Primitive": 1,
        "Inline": True,
        "scale": 0.5,
        "Compiler": "dnnl",
        "target": "<Target>",
        "sizes": {"a": [1, 2]},
    }


def test_an_unknown_record_keeps_its_strings():
    graph = SavedGraph()
    call = one_call(graph, "my.op", graph.record("MyAttrs", size=3, mode="fast"))
    assert call.callee.name == "my.op"
    assert call.attrs == {"size": "3", "mode": "fast"}


def test_two_calls_share_no_list():
    graph = SavedGraph()
    x = graph.var("x")
    axes = graph.integers(1)
    record = graph.record("ReduceAttrs", axis=axes, keepdims=0, exclude=0)
    inner = graph.call("sum", [x], record)
    outer = main_of(graph.main([x], graph.call("max", [inner], record))).body
    assert outer.attrs == outer.args[0].attrs
    assert outer.attrs["axis"] is not outer.args[0].attrs["axis"]
