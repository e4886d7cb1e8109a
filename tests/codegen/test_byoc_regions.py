"""Regions are convex, as a search of all paths says, and models keep their results when cut."""

import itertools

import numpy as np
import pytest
import tvm
from tvm import relax

from tests.codegen.qdq_models import (
    QdqModel,
    onnxruntime_results,
    partitioned,
    random_integers,
)
from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.byoc import register
from tvm_ext.codegen.byoc.graph import Graph
from tvm_ext.codegen.byoc.matcher import Matcher
from tvm_ext.codegen.byoc.regions import is_convex, sources
from tvm_ext.frontend import load_model


def conv(q, x, scale=0.09, channels=6, size=1):
    w = q.weight((channels, channels, size, size))
    return q.op("Conv", [x, w, q.bias(x, w, channels)], scale)


def on_cpu(q, x):
    """An operator that the accelerator doesn't have, quantised."""
    return q.op("Tanh", [x], 0.01)


def diamond(detour):
    """A sum of two branches, one perhaps by way of the CPU."""
    q = QdqModel()
    x = q.input("x", (1, 6, 5, 4))
    y = conv(q, x)
    side = on_cpu(q, y) if detour else conv(q, y)
    q.output(conv(q, q.op("Add", [conv(q, y), side], 0.1)))
    return q


def ladder():
    """Two rails with rungs over the CPU in both directions."""
    q = QdqModel()
    a = b = q.input("x", (1, 6, 5, 4))
    for _ in range(2):
        a, b = conv(q, a), conv(q, b)
        a = q.op("Add", [a, on_cpu(q, b)], 0.1)
        b = q.op("Add", [b, on_cpu(q, a)], 0.1)
    q.output(a)
    q.output(b)
    return q


def several_outputs():
    q = QdqModel("uint8")
    x = q.input("x", (1, 6, 5, 4), zero=120)
    y = conv(q, x)
    q.output(y)
    q.output(conv(q, on_cpu(q, y)))
    q.output(conv(q, y))
    return q


MODELS = {
    "whole": lambda: diamond(False),
    "detour": lambda: diamond(True),
    "ladder": ladder,
    "outputs": several_outputs,
}


def run(mod, inputs):
    """The partitioned module on TVM's own virtual machine."""
    register()
    machine = relax.VirtualMachine(tvm.compile(mod, target="llvm"), tvm.cpu())
    result = machine["main"](*[tvm.runtime.tensor(x) for x in inputs.values()])
    results = [result] if isinstance(result, tvm.runtime.Tensor) else list(result)
    return [r.numpy() for r in results]


@pytest.mark.parametrize(
    ("name", "layers"), [("whole", [5]), ("detour", [2, 2]), ("ladder", None), ("outputs", [2, 1])]
)
def test_same_results_when_cut(name, layers):
    model = MODELS[name]().model()
    found = partitioned(model)
    if layers is not None:
        assert sorted(len(s.network.layers) for s in found.subgraphs) == sorted(layers)
    inputs = random_integers(model)
    for ours, theirs in zip(
        run(found.mod, inputs), onnxruntime_results(model, inputs), strict=True
    ):
        # Tanh on the CPU isn't ONNX Runtime's: it may be one step off, and so may what follows.
        tolerance = 0 if name == "whole" else 2
        assert np.abs(ours.astype(int) - theirs).max() <= tolerance


@pytest.mark.parametrize("name", MODELS)
def test_convexity_against_all_paths(name):
    graph = Graph(load_model(MODELS[name]().model())["main"])
    matches = Matcher(graph, Accelerator()).matches

    def leaves_and_returns(group):
        def reaches(var):
            return var in group or any(reaches(x) for x in sources(var, graph, matches))

        outside = [x for v in group for x in sources(v, graph, matches) if x not in group]
        return any(reaches(x) for x in outside)

    for size in (2, 3):
        for group in itertools.combinations(matches, size):
            assert is_convex(set(group), graph, matches) != leaves_and_returns(set(group))


def test_batch_is_taken_apart():
    q = QdqModel("uint8")
    x = q.input("x", (3, 6, 5, 4), zero=120)
    flat = q.op("Flatten", [q.op("GlobalAveragePool", [conv(q, x)], 0.02)], 0.02)
    w = q.weight((7, 6))
    q.output(q.op("Gemm", [flat, w, q.bias(flat, w, 7)], 0.005, transB=1))
    model = q.model()
    found = partitioned(model)
    assert [s.batch for s in found.subgraphs] == [3]
    assert found.subgraphs[0].macs == found.macs == 3 * (6 * 6 * 20 + 6 * 7)
    inputs = random_integers(model)
    for ours, theirs in zip(
        run(found.mod, inputs), onnxruntime_results(model, inputs), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)
