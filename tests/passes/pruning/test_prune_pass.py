"""The pass on whole modules, against masking the weights in NumPy or ONNX Runtime."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import onnxruntime
import pytest
import tvm
from onnx import numpy_helper
from relax_models import array, const, module, run
from tvm import relax

from passes.pruning import networks
from tvm_ext.errors import OptionError, PruningError
from tvm_ext.frontend import load_model
from tvm_ext.passes import FoldConstants, Prune
from tvm_ext.passes.pruning import (
    BlockPrune,
    MagnitudePrune,
    PatternPrune,
    Scheme,
    prunables,
    replace_weights,
)

SCHEMES = [
    MagnitudePrune(0.3),
    MagnitudePrune(0.3, scope="global"),
    BlockPrune(0.3, block=(4, 9)),
    BlockPrune(0.25, block=(8, 9), row_density=0.5),
    PatternPrune(connectivity=0.6),
    PatternPrune(connectivity=0.6, lanes=4),
]


@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
def test_weights_that_remain_are_those_of_the_mask(scheme: Scheme) -> None:
    mod = networks.convolutions()
    step = Prune(scheme, exclude=())
    before, after = prunables(mod), prunables(step(mod))
    taken = {x.name: x.weights for x in before if not scheme.refuses(x.weights.shape)}
    masks = scheme.masks(taken)
    for old, new, row in zip(before, after, step.report.layers, strict=True):
        assert old.name == new.name == row.name
        mask = masks.get(old.name, True)
        np.testing.assert_array_equal(new.weights, old.weights * mask)
        assert row.density == np.count_nonzero(new.weights) / new.weights.size
        assert row.note == scheme.refuses(old.weights.shape)
        if not row.note:
            assert row.density < 1 or old.name not in masks


def test_it_works_in_a_sequence_and_leaves_its_input_alone() -> None:
    mod = networks.convolutions()
    step = Prune(MagnitudePrune(0.2))
    new = tvm.transform.Sequential([FoldConstants(), step])(mod)
    assert [r.density < 1 for r in step.report.layers] == [False, True, True, True, False]
    assert all(np.count_nonzero(x.weights) == x.weights.size for x in prunables(mod))
    assert len(prunables(new)) == 5


@pytest.mark.parametrize("make", [networks.lstm, networks.gru])
@pytest.mark.parametrize("scheme", [MagnitudePrune(0.25), BlockPrune(0.25, block=(4, 2))], ids=str)
def test_recurrent_models_compute_with_pruned_gates(make: Any, scheme: Scheme) -> None:
    model = make()
    mod = load_model(model)
    new = Prune(scheme)(mod)
    parts = [x.weights for x in prunables(new)]
    assert all(np.count_nonzero(w) == pytest.approx(w.size / 4, abs=2) for w in parts)
    changed = {"w": parts[0][None], "r": np.concatenate(parts[1:])[None]}
    for tensor in model.graph.initializer:
        if tensor.name in changed:
            tensor.CopyFrom(numpy_helper.from_array(changed[tensor.name], tensor.name))
    x = array(9, 3, 1, 5)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    expected = session.run(None, {"x": x})[0]
    np.testing.assert_allclose(run(new, x), expected, rtol=1e-5, atol=1e-6)


def test_projections_of_attention_are_pruned_and_scores_are_not() -> None:
    weights = [array(i, 8, 8) for i in range(4)]

    def body(emit: Any, x: Any) -> Any:
        q, k, v = (emit(relax.op.matmul(x, const(w))) for w in weights[:3])
        scores = emit(relax.op.matmul(q, emit(relax.op.permute_dims(k, [1, 0]))))
        mixed = emit(relax.op.matmul(emit(relax.op.nn.softmax(scores)), v))
        return relax.op.matmul(mixed, const(weights[3]))

    new = Prune(MagnitudePrune(0.5), exclude=())(module({"x": (5, 8)}, body))
    w = [
        np.where(np.abs(m) >= np.sort(np.abs(m), axis=None)[32], m, 0).astype("f8") for m in weights
    ]
    x = array(9, 5, 8)
    scores = np.exp((x @ w[0]) @ (x @ w[1]).T)
    expected = (scores / scores.sum(axis=1, keepdims=True)) @ (x @ w[2]) @ w[3]
    np.testing.assert_allclose(run(new, x), expected, rtol=1e-4, atol=1e-4)


def test_densities_by_layer_replace_that_of_the_scheme() -> None:
    names = [x.name for x in prunables(networks.convolutions())]
    step = Prune(MagnitudePrune(0.5), density={names[1]: 0.25, names[2]: 1.0})
    step(networks.convolutions())
    found = [round(r.density, 2) for r in step.report.layers]
    assert found == [1.0, 0.25, 1.0, 0.5, 1.0]
    everywhere = Prune(BlockPrune(0.5, block=(4, 9)), density=0.25, exclude=())
    everywhere(networks.convolutions())
    assert all(r.density == pytest.approx(0.25, abs=0.03) for r in everywhere.report.layers)


def test_layers_with_a_density_do_not_compete() -> None:
    mod = networks.convolutions()
    names = [x.name for x in prunables(mod)]
    step = Prune(MagnitudePrune(0.1, scope="global"), density={names[1]: 0.5})
    step(mod)
    assert step.report[names[1]].density == 0.5
    rest = [x for x in prunables(mod) if x.name in names[2:4]]
    kept = sum(round(step.report[x.name].density * x.weights.size) for x in rest)
    assert kept == round(0.1 * sum(x.weights.size for x in rest))


def _broken(value: float, weight: int) -> tvm.IRModule:
    mod = networks.convolutions()
    layer = prunables(mod)[weight]
    wrong = layer.weights.copy()
    wrong[1, 0, 2, 1] = value
    return replace_weights(mod, {layer.name: wrong})


@pytest.mark.parametrize(("value", "shown"), [(np.nan, "nan"), (np.inf, "inf")])
def test_weights_that_are_no_numbers_are_refused(value: float, shown: str) -> None:
    mod = _broken(value, 2)
    name = prunables(mod)[2].name
    message = re.escape(f"layer {name}: the weight at (1, 0, 2, 1) is {shown}")
    with pytest.raises(PruningError, match=message):
        Prune(MagnitudePrune(0.5))(mod)
    # What isn't pruned may hold anything.
    Prune(MagnitudePrune(0.5))(_broken(value, 0))


@pytest.mark.parametrize(
    ("scheme", "options", "message"),
    [
        (MagnitudePrune(0.5), {"include": "conv*"}, r"include='conv\*' matches no layer"),
        (MagnitudePrune(0.5), {"density": {"lv": 0.2}}, "density='lv' matches no layer .*: lv2"),
        (MagnitudePrune(0.5), {"exclude": "*"}, r"no layer is left .*: lv: excluded by '\*'"),
        (PatternPrune(), {"include": ["lv6"]}, "layer lv6: a 1x1 kernel"),
        (PatternPrune(), {"include": ["gv*"]}, "no layer is left to prune: .*gv: the last dense"),
    ],
)
def test_layers_that_are_not_there_are_refused(
    scheme: Scheme, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(PruningError, match=message):
        Prune(scheme, **options)(networks.convolutions())


def test_a_module_without_layers_is_refused() -> None:
    mod = module({"x": (2, 2)}, lambda emit, x: relax.op.nn.relu(x))
    with pytest.raises(PruningError, match="no layer is left to prune: the model has none"):
        Prune(MagnitudePrune(0.5))(mod)


@pytest.mark.parametrize(
    ("scheme", "density", "message"),
    [
        (0.5, None, "scheme=0.5 has to be a PatternPrune"),
        (MagnitudePrune(0.5), 0.0, r"density of '\*'=0.0 has to be a number in \(0, 1\]"),
        (MagnitudePrune(0.5), {"lv2": 2}, "density of 'lv2'=2 has to be"),
    ],
)
def test_wrong_options_are_refused_at_once(scheme: Any, density: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Prune(scheme, density=density)
