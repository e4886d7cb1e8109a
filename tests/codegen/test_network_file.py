"""Networks as JSON: round trips, one copy of each constant, damage and versions."""

import base64
import json

import numpy as np
import pytest

from tests.codegen.networks import spec
from tvm_ext.codegen.errors import NetworkError
from tvm_ext.codegen.network import Network
from tvm_ext.codegen.network_elementwise import Add
from tvm_ext.codegen.network_file import digest, from_json, to_json
from tvm_ext.codegen.network_layers import Conv
from tvm_ext.codegen.network_pool import Pool
from tvm_ext.codegen.network_reference import run_reference

SHAPE = (1, 5, 6, 7)


def _network():
    """Two convolutions with the same weights, a sum and a pool."""
    rng = np.random.default_rng(4)
    weight = rng.integers(-128, 128, (5, 5, 3, 3)).astype("int8")
    constants = {
        "w": weight,
        "w2": weight.copy(),
        "b": rng.integers(-100, 100, 5).astype("int32"),
        "s": rng.uniform(0.001, 0.01, 5).astype("float32"),
    }
    layers = tuple(
        Conv(
            name=out, inputs=("x",), output=out, weight=w, bias="b", scales="s",
            pads=(1, 1, 1, 1), clamp=(-5, 99),
        )
        for out, w in (("c", "w"), ("d", "w2"))
    )  # fmt: skip
    scale = float(np.float32(1 / 3))
    layers += (
        Add(name="e", inputs=("c", "d"), output="e", scales=(scale, 0.5), offset=-2.5),
        Pool(name="p", inputs=("e",), output="p", kind="average", kernel=(2, 3)),
    )
    specs = [spec(n, SHAPE, np.float32(0.1), 3) for n in "xcde"] + [spec("p", (1, 5, 5, 5), 0.25)]
    return Network("net", ("x",), ("p", "c"), {s.name: s for s in specs}, layers, constants)


def test_round_trip():
    network = _network()
    text = to_json(network)
    again = from_json(text)
    assert to_json(again) == text
    assert (again.layers, again.tensors) == (network.layers, network.tensors)
    for name, array in network.constants.items():
        np.testing.assert_array_equal(again.constants[name], array)
        assert again.constants[name].dtype == array.dtype
    x = {"x": np.random.default_rng(1).integers(-128, 128, SHAPE).astype("int8")}
    first, second = run_reference(network, x), run_reference(again, x)
    assert all((first[n] == second[n]).all() for n in network.outputs)


def test_equal_constants_are_stored_once():
    document = json.loads(to_json(_network()))
    assert document["constants"]["w"] == document["constants"]["w2"]
    assert len(document["data"]) == 3


def test_bytes_are_little_endian():
    text = to_json(_network())
    document = json.loads(text)
    entry = document["data"][document["constants"]["b"]]
    raw = np.frombuffer(base64.b64decode(entry["data"]), "<i4")
    np.testing.assert_array_equal(raw, _network().constants["b"])
    assert digest(raw.astype(">i4")) == document["constants"]["b"]


def test_without_constants_they_are_given():
    network = _network()
    text = to_json(network, embed=False)
    assert "data" not in json.loads(text)
    arrays = {digest(a): a for a in network.constants.values()}
    assert to_json(from_json(text, arrays)) == to_json(network)
    with pytest.raises(NetworkError, match="the constant 'b' isn't in the JSON and wasn't given"):
        from_json(text)


def _changed(**changes):
    return json.dumps({**json.loads(to_json(_network())), **changes})


def _flipped():
    document = json.loads(to_json(_network()))
    entry = document["data"][document["constants"]["w"]]
    entry["data"] = ("B" if entry["data"][0] == "A" else "A") + entry["data"][1:]
    return json.dumps(document)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is no JSON"),
        ("[]", "isn't a network"),
        (to_json(_network())[:-40], "is no JSON"),
        (_changed(version=2), "network version 2; allowed: 1; update tvm_ext"),
        (_changed(version="x"), "network version 'x'; allowed: 1$"),
        (_changed(layers=[{"layer": "Lstm"}]), "unknown kind of layer 'Lstm'; allowed: .*Conv"),
        (_changed(layers=[{"layer": "Relu", "name": "r", "q": 1}]), "layer r: unknown fields"),
        (_changed(layers=[{"layer": "Relu"}]), "damaged"),
        (_changed(tensors=[{"name": "x"}]), "damaged"),
        (_changed(inputs="x"), "a list of strings"),
        (_changed(outputs=["q"]), "nothing writes the output 'q'"),
        (_flipped(), "its bytes have another digest"),
    ],
)
def test_refused(text, message):
    with pytest.raises(NetworkError, match=message):
        from_json(text)
