"""What of saved JSON isn't read: each is an error that names the file and the node."""

import json

import numpy as np
import pytest

from tvm_ext.errors import ModelError
from tvm_ext.frontend.relay.errors import RelayError
from tvm_ext.frontend.relay.json_graph import read_json_module

from .block import block_json
from .graphs import SavedGraph


def with_node(type_key, **attrs):
    """The body of main is one node."""
    graph = SavedGraph()
    return graph.main([], graph.expression(type_key, **attrs))


def changed(change):
    document = json.loads(block_json("0.16.0"))
    change(document)
    return json.dumps(document)


def find(document, type_key):
    return next(n for n in document["nodes"] if n["type_key"] == type_key)


def cyclic():
    graph = SavedGraph()
    arguments = graph.array([3])
    graph.call("exp", [])  # node 2: an operator, 3: an empty array, 4: its types
    call = graph.expression("relay.Call", op=2, args=arguments, attrs=0, type_args=0)
    graph.nodes[arguments]["data"] = [call]
    return graph.main([], call)


def of_type(type_key):
    graph = SavedGraph()
    x = graph.var("x", graph.add(type_key))
    return graph.main([x], x)


def binds_a_call():
    graph = SavedGraph()
    call = graph.call("exp", [])
    return graph.main([call], call)


def in_tir():
    graph = SavedGraph()
    return graph.save(graph.module({graph.global_var("main"): graph.add("tir.PrimFunc")}))


def without_main():
    graph = SavedGraph()
    x = graph.var("x")
    return graph.save(graph.module({graph.global_var("f"): graph.function([x], x)}))


def calls_nothing():
    graph = SavedGraph()
    return graph.main([], graph.call(graph.global_var("gone"), []))


def deep_value():
    graph = SavedGraph()
    value = graph.integers(1)
    for _ in range(100):
        value = graph.array([value])
    return graph.main([], graph.call("sum", [], graph.record("ReduceAttrs", axis=value)))


def deep_type():
    graph = SavedGraph()
    nested = graph.tensor_type((1,))
    for _ in range(100):
        nested = graph.tuple_type([nested])
    x = graph.var("x", nested)
    return graph.main([x], x)


def without_units():
    graph = SavedGraph()
    return graph.main([], graph.call("nn.dense", [], graph.record("DenseAttrs", out_dtype="")))


BROKEN = {
    "truncated": (lambda: block_json("0.16.0")[:700], r"line \d+, column \d+: isn't whole JSON"),
    "other JSON": (lambda: '{"a":\n1}', "no graph of tvm.ir.save_json"),
    "a list": (lambda: "[\n1]", "no graph of tvm.ir.save_json"),
    "deep JSON": (lambda: "\n" + "[" * 100_000, "JSON"),
    "nodes": (lambda: '{"root": 0,\n"nodes": 3}', "list of nodes is missing"),
    "root": (lambda: changed(lambda d: d.update(root=10**6)), "root is 1000000: allowed are 0 to"),
    "node": (
        lambda: changed(lambda d: d["nodes"].__setitem__(5, "x")),
        "node 5: isn't an object",
    ),
    "attrs": (
        lambda: changed(lambda d: find(d, "relay.Call").update(attrs={"op": 3})),
        r"node \d+: attrs isn't as save_json writes it",
    ),
    "cycle": (cyclic, r"node \d+ \(relay.Call\): depends on itself"),
    "reference": (
        lambda: changed(lambda d: find(d, "relay.Call")["attrs"].update(args="77777")),
        r"node \d+ \(relay.Call\): refers to node 77777: allowed are 0 to",
    ),
    "negative": (
        lambda: changed(lambda d: find(d, "relay.Call")["attrs"].update(args="-1")),
        "refers to node -1",
    ),
    "no number": (
        lambda: changed(lambda d: find(d, "relay.Call")["attrs"].update(args="x")),
        "args is 'x': allowed are whole numbers",
    ),
    "missing": (
        lambda: changed(lambda d: find(d, "relay.Call")["attrs"].pop("op")),
        "the attribute 'op' is missing; there are",
    ),
    "match": (lambda: with_node("relay.Match"), r"node \d+ \(relay.Match\): stands where an expr"),
    "reference cell": (lambda: with_node("relay.RefCreate", value=0), "relay.RefCreate"),
    "constructor": (lambda: with_node("relay.Constructor"), "relay.Constructor"),
    "null": (lambda: SavedGraph().main([], 0), "stands where an expression must be"),
    "not an array": (lambda: with_node("relay.Tuple", fields=1), "stands where an Array must be"),
    "algebraic type": (lambda: of_type("TypeCall"), "this type isn't read"),
    "reference type": (lambda: of_type("relay.RefType"), "this type isn't read"),
    "binds": (binds_a_call, r"\(relay.Function\): binds node \d+, a relay.Call"),
    "TIR": (in_tir, r"\(tir.PrimFunc\): is the function 'main': allowed are relay.Function"),
    "no main": (without_main, r"no function main; it has \['f'\]"),
    "unknown function": (calls_nothing, "the function 'gone' is called, and not there"),
    "other root": (
        lambda: changed(lambda d: d.update(root=0)),
        "is the root: allowed are a module",
    ),
    "deep value": (deep_value, "values nest deeper than 64"),
    "deep type": (deep_type, "types nest deeper than 64"),
    "attribute": (without_units, r"the attributes \['units'\] of DenseAttrs are missing"),
    "float": (
        lambda: changed(lambda d: find(d, "relay.attrs.BatchNormAttrs")["attrs"].update(axis="x")),
        "axis is 'x'",
    ),
    "epsilon": (
        lambda: changed(
            lambda d: find(d, "relay.attrs.BatchNormAttrs")["attrs"].update(epsilon="x")
        ),
        "'x' stands where a number must be",
    ),
    "dtype": (
        lambda: changed(lambda d: find(d, "relay.TensorType")["attrs"].update(dtype="f32")),
        "'f32' is no dtype",
    ),
    "no array": (lambda: changed(lambda d: d["b64ndarrays"].pop()), "the file has 1 of them"),
    "string": (
        lambda: changed(lambda d: d["nodes"][1].update(repr_b64="w6nDqA==")),
        "node 1: repr_b64 is no string: it has -4 bytes behind its length",
    ),
    "string's base64": (
        lambda: changed(lambda d: d["nodes"][1].update(repr_b64="?")),
        "node 1: repr_b64 isn't base64",
    ),
    "base64": (
        lambda: changed(lambda d: d["b64ndarrays"].__setitem__(0, "!")),
        "array 0 isn't base64",
    ),
    "short array": (
        lambda: changed(lambda d: d["b64ndarrays"].__setitem__(0, d["b64ndarrays"][0][:80])),
        "array 0: byte 0: the (shape|data) of an array ends at byte",
    ),
    "long array": (
        lambda: changed(
            lambda d: d["b64ndarrays"].__setitem__(0, d["b64ndarrays"][0][:-4] + "A" * 8)
        ),
        "bytes too many",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_isnt_read_is_an_error_with_its_place(case):
    make, match = BROKEN[case]
    with pytest.raises(RelayError, match=match) as error:
        read_json_module(make(), "old.json")
    assert str(error.value).startswith("old.json")
    assert isinstance(error.value, ModelError)


def test_a_file_cut_anywhere_is_an_error():
    text = block_json("0.16.0")
    for end in range(0, len(text) - 1, 97):
        with pytest.raises(RelayError):
            read_json_module(text[:end])


def test_nodes_exchanged_at_random_are_errors_or_modules():
    rng = np.random.default_rng(5)
    document = json.loads(block_json("0.16.0"))
    count = len(document["nodes"])
    for _ in range(300):
        damaged = json.loads(json.dumps(document))
        node = damaged["nodes"][rng.integers(1, count)]
        place = node.get("attrs") or node.get("data")
        if not place:
            continue
        key = list(place)[rng.integers(len(place))] if isinstance(place, dict) else 0
        other = int(rng.integers(-1, count + 1))
        place[key] = str(other) if isinstance(place, dict) else other
        try:
            read_json_module(json.dumps(damaged))
        except RelayError:
            continue
