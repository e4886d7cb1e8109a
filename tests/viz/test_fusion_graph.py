"""The picture of a graph that is grouped by hand, read back by Graphviz's own parser."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pygraphviz
import pytest
from passes.relax_models import array, const, module
from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.viz import fusion_graph

SHAPE = (1, 4, 6, 6)


def _group(builder, name, inputs, body):
    params = [relax.Var(f"p{i}", relax.TensorType(list(s), "float32")) for i, s in inputs]
    with builder.function(name, params, attrs={"Primitive": True}, private=True):
        with builder.dataflow():
            output = builder.emit_output(body(builder.emit, *params))
        builder.emit_func_output(output)
    return builder.get().get_global_var(name)


@pytest.fixture(scope="module")
def grouped():
    """conv_0: conv, bias, x * sigmoid(x); move_1: transpose, reshape; pool_2; both are outputs."""
    builder = relax.BlockBuilder()

    def conv(emit, x):
        y = emit(relax.op.nn.conv2d(x, const(array(0, 8, 4, 3, 3)), padding=1))
        y = emit(relax.op.add(y, const(array(1, 1, 8, 1, 1))))
        return emit(relax.op.multiply(y, emit(relax.op.sigmoid(y))))

    def move(emit, y):
        return emit(relax.op.reshape(emit(relax.op.permute_dims(y, (0, 2, 3, 1))), (36, 8)))

    def pool(emit, y):
        y = emit(relax.op.nn.max_pool2d(y, pool_size=2, strides=2))
        return emit(relax.op.multiply(y, relax.const(np.float32(2))))

    x = relax.Var("x", relax.TensorType(list(SHAPE), "float32"))
    made = (1, 8, 6, 6)
    functions = [
        _group(builder, "conv", [(0, SHAPE)], conv),
        _group(builder, "move", [(0, made)], move),
        _group(builder, "pool", [(0, made)], pool),
    ]
    with builder.function("main", [x], attrs={"tvm_ext.output_names": ["rows", "pooled"]}):
        with builder.dataflow():
            y = builder.emit(relax.Call(functions[0], [x]), "conv_0")
            rows = builder.emit(relax.Call(functions[1], [y]), "move_1")
            pooled = builder.emit(relax.Call(functions[2], [y]), "pool_2")
            output = builder.emit_output(relax.Tuple([rows, pooled]))
        builder.emit_func_output(output)
    return builder.get()


def _parsed(drawing):
    return pygraphviz.AGraph(string=drawing.source)


def _label(graph, node):
    return graph.get_node(node).attr["label"].replace("\n", " ")


def _layers(graph):
    """Labels of the nodes in each box, by the box's label."""
    return {
        box.graph_attr["label"]: sorted(_label(graph, n) for n in box.nodes())
        for box in graph.subgraphs()
    }


def _edges(graph):
    return sorted(
        (_label(graph, a), _label(graph, b), graph.get_edge(a, b).attr["label"].strip())
        for a, b in graph.edges()
    )


def test_layers_are_boxes_and_values_edges(grouped):
    graph = _parsed(fusion_graph(grouped))
    made = "1×8×6×6"
    assert _layers(graph) == {
        # The value that sigmoid and multiply read is a node of the layer, the one that is read
        # by two layers isn't.
        "conv_0": sorted(["conv2d 8×4×3×3", "add 1×8×1×1", "sigmoid", "multiply", made]),
        "move_1": ["permute_dims", "reshape"],
        "pool_2": ["max_pool2d", "multiply"],
    }
    assert _edges(graph) == sorted(
        [
            ("x", "conv2d 8×4×3×3", "1×4×6×6"),
            ("conv2d 8×4×3×3", "add 1×8×1×1", made),
            ("add 1×8×1×1", made, ""),
            (made, "sigmoid", ""),
            (made, "multiply", ""),
            ("sigmoid", "multiply", made),
            ("multiply", made, ""),
            (made, "permute_dims", ""),
            (made, "max_pool2d", ""),
            ("permute_dims", "reshape", "1×6×6×8"),
            ("max_pool2d", "multiply", "1×8×3×3"),
            ("reshape", "rows", "36×8"),
            ("multiply", "pooled", "1×8×3×3"),
        ]
    )


def test_operators_have_their_types_colours(grouped):
    graph = _parsed(fusion_graph(grouped))
    found = {}
    for node in graph.nodes():
        if node.attr["fillcolor"]:
            name = node.attr["label"].split("\n")[0]
            found.setdefault(node.attr["fillcolor"], set()).add(name)
    # The bias is broadcast, but what flows in isn't.
    assert sorted(map(sorted, found.values())) == [
        ["add", "multiply", "sigmoid"], ["conv2d", "max_pool2d"], ["permute_dims"], ["reshape"],
    ]  # fmt: skip
    legend = graph.graph_attr["label"]
    for colour, kind in (
        (graph.get_node("1.0").attr["fillcolor"], "Many-to-Many"),
        (graph.get_node("1.1").attr["fillcolor"], "One-to-One"),
        (graph.get_node("2.0").attr["fillcolor"], "Shuffle"),
        (graph.get_node("2.1").attr["fillcolor"], "Reorganize"),
    ):
        assert f'<td bgcolor="{colour}"> {kind} </td>' in legend


def test_a_range_shows_its_neighbours_as_stubs(grouped):
    graph = _parsed(fusion_graph(grouped, 1, 2))
    assert list(_layers(graph)) == ["move_1"]
    assert _edges(graph) == [
        ("conv_0", "permute_dims", "1×8×6×6"),
        ("permute_dims", "reshape", "1×6×6×8"),
        ("reshape", "rows", "36×8"),
    ]
    stub, output = (next(n for n in graph.nodes() if _label(graph, n) == name)
                    for name in ("conv_0", "rows"))  # fmt: skip
    assert (stub.attr["style"], output.attr["style"]) == ("dashed", "solid")
    first = _parsed(fusion_graph(grouped, stop=1))
    assert {_label(first, n) for n in first.nodes() if n.attr["style"] == "dashed"} == {
        "move_1", "pool_2",
    }  # fmt: skip


def test_fields_of_tuples_are_values_of_their_own():
    builder = relax.BlockBuilder()
    x = relax.Var("odd \\n name", relax.TensorType([4, 6], "int32"))
    p = relax.Var("p", relax.TensorType([4, 6], "int32"))
    with builder.function("split", [p], attrs={"Primitive": True}, private=True):
        with builder.dataflow():
            output = builder.emit_output(builder.emit(relax.op.split(p, 2, axis=1)))
        builder.emit_func_output(output)
    function = builder.get().get_global_var("split")
    with builder.function("main", [x]):
        with builder.dataflow():
            parts = builder.emit(relax.Call(function, [x]), "split_0")
            first = builder.emit(relax.TupleGetItem(parts, 0))
            second = builder.emit(relax.TupleGetItem(parts, 1))
            output = builder.emit_output(relax.Tuple([second, first]))
        builder.emit_func_output(output)
    graph = _parsed(fusion_graph(builder.get()))
    assert _edges(graph) == [
        ("odd \\\\n name", "split", "4×6 int32"),
        ("split", "output 0", "4×3 int32"),
        ("split", "output 1", "4×3 int32"),
    ]


def test_operators_outside_of_groups_are_refused():
    mod = module({"x": SHAPE}, lambda emit, x: relax.op.nn.relu(x))
    with pytest.raises(ModelError, match=r"relax\.nn\.relu is in no group"):
        fusion_graph(mod)


def test_it_draws_itself_without_dot(grouped, monkeypatch):
    monkeypatch.setenv("PATH", "")
    drawing = fusion_graph(grouped)
    shown = drawing._repr_mimebundle_()["image/svg+xml"]
    texts = {t.text.strip() for t in ET.fromstring(shown).iter("{http://www.w3.org/2000/svg}text")}
    assert {"conv_0", "conv2d", "8×4×3×3", "1×8×6×6", "pooled", "Shuffle"} <= texts
    assert drawing.svg() == shown
    assert drawing.png().startswith(b"\x89PNG")
