"""The call of a subgraph: compiled once, by content, whoever calls; damage is refused."""

import json
import threading

import numpy as np
import pytest

from tests.codegen.qdq_models import (
    QdqModel,
    onnxruntime_results,
    partitioned,
    random_integers,
)
from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.byoc import Runtime, read_subgraph, reference_engine, summary
from tvm_ext.codegen.errors import NetworkError
from tvm_ext.codegen.network_file import to_json


def small(seed=0, dtype="int8"):
    q = QdqModel(dtype, seed)
    x = q.input("x", (1, 4, 5, 6), zero=100)
    w = q.weight((3, 4, 3, 3))
    q.output(q.op("Conv", [x, w, q.bias(x, w, 3)], 0.05, 90, pads=[1, 1, 1, 1]))
    return q.model()


class Counting:
    """An engine that counts."""

    def __init__(self):
        self.compiled = []

    def __call__(self, network, accelerator):
        self.compiled.append((network.name, accelerator))
        return reference_engine(network, accelerator)


def arguments(model, inputs):
    subgraph = partitioned(model).subgraphs[0]
    document = np.frombuffer(subgraph.document().encode(), "uint8").copy()
    expected = onnxruntime_results(model, inputs)
    outputs = [np.zeros_like(x) for x in expected]
    return [document, *inputs.values(), *subgraph.arrays(), *outputs], expected


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_compiled_once_and_run_often(dtype):
    engine = Counting()
    runtime = Runtime(engine)
    model = small(dtype=dtype)
    for seed in range(3):
        call, expected = arguments(model, random_integers(model, seed))
        runtime.run(*call)
        np.testing.assert_array_equal(call[-1], expected[0])
    assert engine.compiled == [("accelerator_0", Accelerator())]
    assert [x.subgraph.network.name for x in runtime.loaded] == ["accelerator_0"]
    call, _ = arguments(small(1, dtype), random_integers(model))
    runtime.run(*call)
    assert len(engine.compiled) == len(runtime.loaded) == 2


def test_another_engine_starts_over():
    model, engine = small(), Counting()
    runtime = Runtime()
    call, expected = arguments(model, random_integers(model))
    runtime.run(*call)
    runtime.use(engine)
    assert runtime.loaded == ()
    runtime.run(*call)
    assert len(engine.compiled) == 1
    np.testing.assert_array_equal(call[-1], expected[0])


def test_many_threads():
    model, engine = small(), Counting()
    runtime = Runtime(engine)
    calls = [arguments(model, random_integers(model, seed)) for seed in range(8)]
    threads = [threading.Thread(target=runtime.run, args=call) for call, _ in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(engine.compiled) == 1
    for call, expected in calls:
        np.testing.assert_array_equal(call[-1], expected[0])


def test_documents_round_trip():
    subgraph = partitioned(small(dtype="uint8")).subgraphs[0]
    again = read_subgraph(subgraph.document(), subgraph.arrays())
    assert to_json(again.network) == to_json(subgraph.network)
    assert (again.accelerator, again.batch, again.unsigned) == (Accelerator(), 1, True)
    assert again.operators == ("nn.conv2d", "add")
    found = summary(subgraph.document())
    assert (found.name, found.macs) == ("accelerator_0", 3 * 30 * 36)
    assert found.operators == subgraph.operators


def _changed(**changes):
    return json.dumps({**json.loads(partitioned(small()).subgraphs[0].document()), **changes})


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("{", "is no JSON"),
        ("[1]", "isn't an offloaded subgraph"),
        (_changed(version=9), "version 9; allowed: 1"),
        (_changed(batch="x"), "damaged"),
        (_changed(network=[]), "damaged"),
        (_changed(accelerator={"pe": 1}), "damaged"),
    ],
)
def test_damage_is_refused(document, message):
    subgraph = partitioned(small()).subgraphs[0]
    with pytest.raises(NetworkError, match=message):
        read_subgraph(document, subgraph.arrays())
    with pytest.raises(NetworkError):
        Runtime().run(np.frombuffer(document.encode(), "uint8").copy(), *subgraph.arrays())


def test_missing_constants_are_refused():
    subgraph = partitioned(small()).subgraphs[0]
    with pytest.raises(NetworkError, match="damaged"):
        read_subgraph(subgraph.document(), subgraph.arrays()[1:])
