"""Modules saved as JSON by several versions of TVM."""

from pathlib import Path

import numpy as np
import pytest

from tvm_ext.frontend.relay.ast import (
    Call,
    Constant,
    Function,
    GlobalVar,
    If,
    Let,
    TensorType,
    TupleGetItem,
    TupleType,
    Var,
)
from tvm_ext.frontend.relay.json_graph import read_json_module
from tvm_ext.frontend.relay.structural_equal import structural_difference

from .block import PARAMS, SHIFT, block_json, block_module
from .graphs import SavedGraph, scalar

DATA = Path(__file__).parent / "data"


def main_of(text):
    return read_json_module(text).functions["main"]


def one_call(graph, op, record=0, types=((2, 3),)):
    """The call of a module that has nothing else."""
    params = [graph.var(f"x{i}", graph.tensor_type(shape)) for i, shape in enumerate(types)]
    return main_of(graph.main(params, graph.call(op, params, record))).body


@pytest.mark.parametrize("version", ["0.8.0", "0.12.0", "0.16.0", "0.18.dev0", "0.19.0"])
def test_a_network_of_each_version_reads_the_same(version):
    module = read_json_module(block_json(version))
    assert structural_difference(module, block_module()) == ""
    assert module.version == version


def test_a_saved_file_reads_the_same():
    module = read_json_module((DATA / "block.json").read_text())
    assert structural_difference(module, block_module()) == ""


def test_names_types_constants_and_complete_attributes():
    main = main_of(block_json("0.16.0"))
    assert [p.name for p in main.params] == list(PARAMS)
    assert main.params[1].type == TensorType((4, 1, 3, 3), "float32")
    assert main.ret_type == TensorType((1, 4, 2, 2), "float32")
    pool = main.body
    assert pool.attrs == {
        "pool_size": [2, 2],
        "strides": [2, 2],
        "dilation": [1, 1],
        "padding": [0, 0, 0, 0],
        "ceil_mode": False,
        "layout": "NCHW",
        "out_layout": "",
    }
    assert pool.type == TensorType((1, 4, 2, 2), "float32")
    total = pool.args[0].args[0]
    shift = total.args[1].args[1]
    assert isinstance(shift, Constant)
    np.testing.assert_array_equal(shift.data, SHIFT)
    assert pool.args[0].args[1].data.shape == ()


def test_a_value_used_twice_is_one_object():
    total = main_of(block_json("0.16.0")).body.args[0].args[0]
    normed, shifted = total.args
    first, second = shifted.args[0].args[0].fields
    assert isinstance(normed, TupleGetItem)
    assert first.value is second.value
    assert first.value.args[0] is normed


def test_a_graph_of_thousands_of_calls_is_read():
    graph = SavedGraph()
    x = graph.var("x", graph.tensor_type((2,)))
    value = x
    for _ in range(5000):
        value = graph.call("nn.relu", [value])
    call = main_of(graph.main([x], value)).body
    depth = 0
    while isinstance(call, Call):
        call, depth = call.args[0], depth + 1
    assert depth == 5000
    assert isinstance(call, Var)


def test_let_if_and_functions():
    graph = SavedGraph()
    vector, boolean = graph.tensor_type((2,)), graph.tensor_type((), "bool")
    x, c = graph.var("x", vector), graph.var("c", boolean)
    p = graph.var("p", vector)
    one = graph.integer(1)
    fused = graph.function([p], graph.call("exp", [p]), vector, {"Primitive": one})
    f, y = graph.var("f"), graph.var("y", vector)
    called = graph.expression(
        "relay.Let", var=y, value=graph.call(f, [x]), body=graph.call("tanh", [y])
    )
    let = graph.expression("relay.Let", var=f, value=fused, body=called)
    choice = graph.expression("relay.If", cond=c, true_branch=let, false_branch=x)
    main = main_of(graph.main([x, c], choice))
    choice = main.body
    assert isinstance(choice, If)
    assert choice.condition is main.params[1]
    assert choice.false is main.params[0]
    outer = choice.true
    assert isinstance(outer, Let)
    assert isinstance(outer.value, Function)
    assert outer.value.attrs == {"Primitive": 1}
    assert outer.var.type is None
    inner = outer.body
    assert inner.value.callee is outer.var
    assert inner.body.args == (inner.var,)


def test_only_functions_that_main_reaches_are_read():
    graph = SavedGraph()
    x, y = graph.var("x"), graph.var("x")
    used, unused, main = (graph.global_var(name) for name in ("used", "unused", "main"))
    match = graph.expression("relay.Match", data=x)
    text = graph.save(
        graph.module(
            {
                used: graph.function([y], graph.call("exp", [y])),
                unused: graph.function([], match),
                main: graph.function([x], graph.call(used, [x])),
            }
        )
    )
    module = read_json_module(text)
    assert set(module.functions) == {"main", "used"}
    callee = module.functions["main"].body.callee
    assert isinstance(callee, GlobalVar)
    assert callee.name == "used"


def test_a_function_that_calls_itself():
    graph = SavedGraph()
    x, main = graph.var("x"), graph.global_var("main")
    text = graph.save(graph.module({main: graph.function([x], graph.call(main, [x]))}))
    assert read_json_module(text).functions["main"].body.callee.name == "main"


def test_a_single_function_is_main():
    graph = SavedGraph()
    x = graph.var("x", graph.tensor_type((3,)))
    module = read_json_module(graph.save(graph.function([x], graph.call("exp", [x]))))
    assert module.functions["main"].body.callee.name == "exp"


def test_open_and_symbolic_dimensions():
    graph = SavedGraph()
    n = graph.add("tir.Var", name=graph.string("n"), dtype="int32", type_annotation=0)
    dims = graph.array([graph.add("tir.Any", dtype="int32"), graph.integer(3, "int64"), n])
    x = graph.var("x", graph.add("relay.TensorType", dtype="int8", shape=dims))
    assert main_of(graph.main([x], x)).params[0].type == TensorType(("?", 3, "n"), "int8")


def test_nodes_with_one_identity_are_one_variable():
    graph = SavedGraph()
    annotation = graph.tensor_type((2,))
    vid = graph.add("relay.Id", name_hint=graph.string("x"))
    param, use = graph.var("x", annotation, vid), graph.var("x", annotation, vid)
    main = main_of(graph.main([param], graph.call("exp", [use])))
    assert main.body.args[0] is main.params[0]


def test_a_type_that_relay_inferred_may_be_algebraic():
    graph = SavedGraph()
    x = graph.var("x", graph.tensor_type((2,)))
    call = graph.call("exp", [x], 0, graph.add("TypeCall", func=0))
    assert main_of(graph.main([x], call)).body.type is None


def test_types_of_tuples_and_functions():
    graph = SavedGraph()
    pair = graph.tuple_type([graph.tensor_type((2,)), graph.tensor_type((), "int64")])
    x, f = graph.var("x", pair), graph.var("f", graph.add("FuncType"))
    main = main_of(graph.main([x, f], x))
    tensor, number = TensorType((2,), "float32"), TensorType((), "int64")
    assert main.params[0].type == TupleType((tensor, number))
    assert main.params[1].type is None


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


def test_a_name_that_isnt_ascii():
    graph = SavedGraph()
    name = graph.add("runtime.String")
    graph.nodes[name]["repr_b64"] = "w6nDqA=="
    x = graph.var("", 0, graph.add("relay.Id", name_hint=name))
    assert main_of(graph.main([x], x)).params[0].name == "éè"


def test_a_constant_is_read_bit_for_bit():
    graph = SavedGraph()
    value = np.array([[1, -2, 127], [-128, 0, 5]], "int8")
    main = main_of(graph.main([], graph.tuple([graph.constant(value), graph.constant(scalar(2))])))
    first, second = main.body.fields
    assert first.data.dtype == np.int8
    np.testing.assert_array_equal(first.data, value)
    assert second.data == np.float32(2)
