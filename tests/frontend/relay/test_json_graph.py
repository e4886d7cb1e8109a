"""Modules saved as JSON by several versions of TVM."""

import base64
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


def unprintable(graph, text):
    """A string as a graph has it that isn't printable: a length of 8 bytes before its own."""
    node = graph.add("runtime.String")
    data = text.encode() if isinstance(text, str) else text
    encoded = base64.b64encode(len(data).to_bytes(8, "little") + data)
    graph.nodes[node]["repr_b64"] = encoded.decode()
    return node


@pytest.mark.parametrize(
    ("text", "name"), [("éè", "éè"), ("a\n" * 200, "a\n" * 200), (b"caf\xe9", "caf\\xe9")]
)
def test_names_that_arent_printable(text, name):
    graph = SavedGraph()
    x = graph.var("", 0, graph.add("relay.Id", name_hint=unprintable(graph, text)))
    assert main_of(graph.main([x], x)).params[0].name == name


def test_the_source_of_a_module_that_was_parsed_is_gone_past():
    graph = SavedGraph()
    x = graph.var("x")
    main = graph.function([x], x)
    source = graph.add("Source", source=unprintable(graph, "def @main() {\n}"), source_name=0)
    module = graph.module({graph.global_var("main"): main})
    graph.nodes[module]["attrs"]["source_map"] = str(graph.map({"from_string": source}))
    assert main_of(graph.save(module)).params[0].name == "x"


def test_a_constant_is_read_bit_for_bit():
    graph = SavedGraph()
    value = np.array([[1, -2, 127], [-128, 0, 5]], "int8")
    main = main_of(graph.main([], graph.tuple([graph.constant(value), graph.constant(scalar(2))])))
    first, second = main.body.fields
    assert first.data.dtype == np.int8
    np.testing.assert_array_equal(first.data, value)
    assert second.data == np.float32(2)
