"""Boxes of single-shot detectors, against the definition and numbers by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontend.cases import normal
from tests.frontend.relay.convert_cases import Case, Cases

# Three anchors, two images; class 0 is the background.
SCORES = np.array(
    [
        [[0.1, 0.2, 0.5], [0.6, 0.1, 0.3], [0.3, 0.15, 0.2]],
        [[0.9, 0.1, 0.2], [0.05, 0.2, 0.7], [0.05, 0.7, 0.1]],
    ],
    "float32",
)
OFFSETS = normal(2, 12)
ANCHORS = np.array([[[0, 0, 0.5, 0.5], [0.2, 0.1, 0.6, 0.7], [0.5, 0.5, 1, 1]]], "float32")
VARIANCES = [0.1, 0.1, 0.2, 0.2]


def decoded(clip: bool) -> np.ndarray:
    """Centre and size of each anchor, moved and scaled (Liu et al. 2016)."""
    low, high = ANCHORS[..., :2].astype("float64"), ANCHORS[..., 2:].astype("float64")
    shifts = OFFSETS.reshape(2, 3, 4) * np.array(VARIANCES)
    centre = (low + high) / 2 + shifts[..., :2] * (high - low)
    half = np.exp(shifts[..., 2:]) * (high - low) / 2
    boxes = np.concatenate([centre - half, centre + half], -1)
    return boxes.clip(0, 1) if clip else boxes


def rows(valid: list[list[tuple[int, int, float]]], clip: bool) -> np.ndarray:
    """Anchor, class and score of the valid rows; the others are -1."""
    boxes, result = decoded(clip), np.full((2, 3, 6), -1.0)
    for i, image in enumerate(valid):
        for j, (anchor, label, score) in enumerate(image):
            result[i, j] = [label, score, *boxes[i, anchor]]
    return result.astype("float32")


VALID = [[(0, 0, 0.6), (2, 0, 0.3)], [(1, 1, 0.7), (2, 0, 0.7)]]
EVERY = [
    [(0, 1, 0.6), (1, 0, 0.2), (2, 0, 0.5)],
    [(0, 0, 0.9), (1, 2, 0.7), (2, 1, 0.7)],
]
NAME = "vision.multibox_transform_loc"
CASES = Cases(
    [
        Case(
            "clipped",
            NAME,
            [SCORES, OFFSETS, ANCHORS],
            {"clip": True, "threshold": 0.25, "variances": VARIANCES},
            [rows(VALID, True), np.array([2, 2], "int32")],
            runtime=(0, 1),
        ),
        Case(
            "background",
            NAME,
            [SCORES, OFFSETS, ANCHORS],
            {"clip": False, "threshold": 0.25, "variances": VARIANCES, "keep_background": True},
            [rows(EVERY, False), np.array([3, 3], "int32")],
            runtime=(0, 1, 2),
        ),
    ]
)


@pytest.mark.parametrize("name", CASES.cases)
def test_operator(name: str) -> None:
    CASES.check(name)
