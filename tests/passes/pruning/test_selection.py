"""Which layers are pruned, for a network of three convolutions and two dense layers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tvm_ext.errors import PruningError
from tvm_ext.passes.pruning import Prunable
from tvm_ext.passes.pruning.selection import per_layer, select


def _layer(name: str, kind: str, uses: int = 1) -> Prunable:
    pairs = tuple((f"{name}{i}", None) for i in range(uses))
    return Prunable(name, kind, pairs[0][0], None, np.ones((2, 2)), pairs, (0, 1))


LAYERS = [
    _layer("stem", "conv"), _layer("block1_conv", "conv"), _layer("block2_conv", "conv"),
    _layer("fc", "matmul"), _layer("head", "matmul"),
]  # fmt: skip


def _chosen(**options: Any) -> list[str]:
    return [name for name, reason in select(LAYERS, **options).items() if not reason]


@pytest.mark.parametrize(
    ("options", "chosen"),
    [
        ({}, ["block1_conv", "block2_conv", "fc"]),
        ({"exclude": ()}, [x.name for x in LAYERS]),
        ({"exclude": "fc"}, ["stem", "block1_conv", "block2_conv", "head"]),
        ({"include": "*_conv"}, ["block1_conv", "block2_conv"]),
        ({"include": ["block*", "fc"], "exclude": ["block2*"]}, ["block1_conv", "fc"]),
        ({"include": "*"}, ["block1_conv", "block2_conv", "fc"]),
        ({"include": ["stem", "*2*"]}, ["stem", "block2_conv"]),
        ({"include": ["stem", "*2*"], "exclude": "st*"}, ["block2_conv"]),
    ],
)
def test_layers_are_named_excluded_and_left_out(options: Any, chosen: list[str]) -> None:
    assert _chosen(**options) == chosen


def test_reasons() -> None:
    assert select(LAYERS, include=["block1*", "head*"]) == {
        "stem": "not included", "block1_conv": "", "block2_conv": "not included",
        "fc": "not included", "head": "the last dense layer",
    }  # fmt: skip
    assert select(LAYERS)["stem"] == "the first convolution"
    assert select(LAYERS, exclude="f?")["fc"] == "excluded by 'f?'"


def test_recurrent_gates_at_the_end_are_no_classifier() -> None:
    layers = [_layer("gates", "matmul"), _layer("state", "matmul", uses=5)]
    assert not any(select(layers).values())


def test_only_a_dense_layer_at_the_end_is_left_out() -> None:
    layers = [_layer("gate", "matmul"), _layer("a", "conv"), _layer("b", "conv")]
    assert [n for n, reason in select(layers).items() if reason] == ["a"]


@pytest.mark.parametrize("option", ["include", "exclude"])
def test_a_pattern_that_matches_nothing_is_an_error(option: str) -> None:
    message = f"{option}='blok\\*' matches no layer .*: stem, block1_conv, block2_conv, fc, head"
    with pytest.raises(PruningError, match=message):
        select(LAYERS, **{option: ["stem", "blok*"]})


def test_values_by_layer_come_from_the_first_pattern() -> None:
    given = {"block1*": 0.1, "block*": 0.2, "f[c]": 0.3}
    names = [x.name for x in LAYERS]
    assert per_layer("density", given, names) == {
        "block1_conv": 0.1, "block2_conv": 0.2, "fc": 0.3
    }  # fmt: skip
    with pytest.raises(PruningError, match=r"density='tail' matches no layer"):
        per_layer("density", {"tail": 0.1}, names)


def test_a_name_with_special_characters_matches_itself() -> None:
    assert per_layer("density", {"x[0]": 0.5}, ["x[0]", "x0"]) == {"x[0]": 0.5, "x0": 0.5}
