"""Equation 6.1, on the numbers of Gibson and Cano's table 6.2."""

from __future__ import annotations

import re
from math import sqrt

import pytest

from tvm_ext.errors import TuningError
from tvm_ext.transfer.donors import choose_donors, rank_donors, score

TABLE = {
    "ResNet50": "A4 17, B1 0, C1 0, D1 6, E16 67, G4 10",
    "AlexNet": "B3 0, D1 6, E5 14, H2 80, I1 0",
    "VGG-16": "B5 0, D1 1, E9 59, H2 40, I1 0",
    "MobileNetV2": "A7 15, C1 0, D1 24, J8 32, K5 15, L10 14",
    "EfficientNetB0": "A14 9, C11 4, D1 12, K5 9, M8 39, N12 27, O7 0",
    "EfficientNetB4": "A16 11, C13 3, D1 10, K7 14, M9 39, N14 23, O9 0",
    "GoogLeNet": "B10 1, C1 0, D1 4, E49 95",
    "MnasNet1.0": "A7 17, D1 25, E9 31, K5 15, P12 13",
    "BERT": "D1 0, Q3 98, R2 2, S1 0, T1 0, U1 0, V1 0",
    "MobileBERT": "D1 0, Q4 97, R2 3, S1 0",
}


def parsed(row: str) -> tuple[dict[tuple[str, ...], float], dict[tuple[str, ...], int]]:
    cells = re.findall(r"([A-Z])(\d+) (\d+)", row)
    return {(c,): int(p) / 100 for c, _, p in cells}, {(c,): int(n) for c, n, _ in cells}


MODELS = {name: parsed(row) for name, row in TABLE.items()}


def choices(model: str, top: int | None) -> list[str]:
    others = {name: counts for name, (_, counts) in MODELS.items() if name != model}
    return choose_donors(MODELS[model][0], others, top)


def test_by_hand() -> None:
    shares = {("a",): 0.5, ("b",): 0.3, ("c",): 0.2}
    counts = {("a",): 4, ("c",): 9, ("d",): 100}
    assert score(shares, counts) == pytest.approx(0.25 * 2 + 0.04 * 3)


@pytest.mark.parametrize(
    ("model", "first"),
    [
        ("ResNet50", "GoogLeNet"), ("AlexNet", "VGG-16"), ("VGG-16", "GoogLeNet"),
        ("MobileNetV2", "EfficientNetB4"), ("EfficientNetB0", "EfficientNetB4"),
        ("EfficientNetB4", "EfficientNetB0"), ("GoogLeNet", "ResNet50"),
        ("MnasNet1.0", "GoogLeNet"), ("BERT", "MobileBERT"), ("MobileBERT", "BERT"),
    ],
)  # fmt: skip
def test_the_choices_of_the_paper(model: str, first: str) -> None:
    assert choices(model, 1) == [first]


def test_the_next_choices() -> None:
    assert choices("MobileNetV2", 3) == ["EfficientNetB4", "EfficientNetB0", "MnasNet1.0"]


def test_all_donors_that_share_a_class() -> None:
    pooled = choices("AlexNet", None)
    assert len(pooled) == 9
    assert pooled[0] == "VGG-16"
    shares = MODELS["GoogLeNet"][0]
    assert choose_donors(shares, {"none": {("Z",): 5}, "one": {("E",): 1}}, None) == ["one"]


def test_scores_say_how_much_is_covered() -> None:
    shares = {("a",): 0.5, ("b",): 0.3}
    first, second = rank_donors(shares, {"x": {("b",): 1}, "y": {("a",): 9, ("b",): 0}})
    assert (first.name, first.score, first.covered) == ("y", 0.25 * sqrt(9), 0.5)
    assert (second.name, second.covered) == ("x", 0.3)


def test_no_donor_at_all() -> None:
    with pytest.raises(TuningError, match="top=0; allowed: 1 or more, or None"):
        choose_donors({}, {}, 0)
    assert choose_donors({("a",): 1.0}, {}, 3) == []
