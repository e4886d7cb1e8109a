"""Operators of detectors against ONNX Runtime, and against loops."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontend.cases import Case as OnnxCase
from tests.frontend.cases import normal, run_onnxruntime
from tests.frontend.relay.convert_cases import (
    Case,
    Cases,
    agree,
    constants,
    module_of,
    op,
    run,
    tensor,
)
from tvm_ext.errors import ModelError
from tvm_ext.frontend.relay import ast
from tvm_ext.frontend.relay.convert import relay_to_relax

X = normal(2, 3, 9, 8)
REGIONS = np.array([[0, 1.0, 2.0, 12.5, 9.0], [1, 0.0, 0.0, 15.0, 17.0]], "float32")


# Class, score, box. By hand: the second overlaps the first of its class by 81 %, the third is of
# another class, the fourth is below the threshold of 0.3, the fifth overlaps nothing.
DETECTIONS = np.array(
    [
        [0, 0.9, 0, 0, 10, 10],
        [0, 0.8, 1, 1, 10, 10],
        [1, 0.7, 0, 0, 10, 10],
        [0, 0.2, 5, 5, 9, 9],
        [0, 0.6, 20, 20, 30, 30],
    ],
    "float32",
)[None]


def by_onnx(op: str, inputs: list[np.ndarray], **attrs: object) -> np.ndarray:
    case = OnnxCase("oracle", op, inputs, attrs)
    return run_onnxruntime(case.model(), case.feeds())[0]


CASES = Cases(
    [
        Case(
            "roi_align",
            "vision.roi_align",
            [X, REGIONS],
            {"pooled_size": [3, 4], "spatial_scale": 0.5, "sample_ratio": 2},
            by_onnx(
                "RoiAlign", [X, REGIONS[:, 1:], REGIONS[:, 0].astype("int64")],
                output_height=3, output_width=4, spatial_scale=0.5, sampling_ratio=2,
                coordinate_transformation_mode="output_half_pixel",
            ),
        ),
        # One bin of 4 x 3 pixels with samples in the rows 1 and 3, at 0.75 and 2.25 of each.
        Case(
            "roi_align_max",
            "vision.roi_align",
            [X, np.array([[1, 0, 0, 3, 4]], "float32")],
            {"pooled_size": [1, 1], "spatial_scale": 1.0, "sample_ratio": 2, "mode": "max"},
            np.maximum(
                X[1:, :, [1, 3], 0] / 4 + X[1:, :, [1, 3], 1] * 3 / 4,
                X[1:, :, [1, 3], 2] * 3 / 4 + X[1:, :, [1, 3], 3] / 4,
            ).max(-1)[..., None, None],
        ),
        Case(
            "roi_pool",
            "vision.roi_pool",
            [X, REGIONS],
            {"pooled_size": [3, 4], "spatial_scale": 0.5},
            by_onnx("MaxRoiPool", [X, REGIONS], pooled_shape=[3, 4], spatial_scale=0.5),
        ),
        # Darknet's loop, by hand: one channel of 4 x 4 pixels, every second of which is a channel.
        Case(
            "reorg",
            "vision.yolo_reorg",
            [np.arange(16, dtype="float32").reshape(1, 4, 2, 2)],
            {"stride": 2},
            np.array([0, 2, 8, 10, 1, 3, 9, 11, 4, 6, 12, 14, 5, 7, 13, 15], "float32").reshape(
                1, 16, 1, 1
            ),
        ),
    ]
)  # fmt: skip


@pytest.mark.parametrize("name", CASES.cases)
def test_operator(name: str) -> None:
    CASES.check(name)


@pytest.mark.parametrize("indices", [True, False])
def test_non_max_suppression(indices: bool) -> None:
    x = tensor("x", 1, 5, 6)
    threshold, overlap = (ast.Constant(np.asarray(n, "float32")) for n in (0.3, 0.5))
    counted = op("vision.get_valid_counts", x, threshold, id_index=0, score_index=1)
    count, boxes, order = (ast.TupleGetItem(counted, i) for i in range(3))
    body = op(
        "vision.non_max_suppression",
        *(boxes, count, order, ast.Constant(np.asarray(-1, "int32")), overlap),
        return_indices=indices,
        invalid_to_bottom=True,
    )
    got = run(module_of([x], body), DETECTIONS)
    if indices:
        agree(got, [np.array([[0, 2, 4, -1, -1]], "int32"), np.array([[3]], "int32")])
    else:
        kept = np.full((1, 5, 6), -1, "float32")
        kept[0, :3] = DETECTIONS[0, [0, 2, 4]]
        agree(got, kept)


def test_anchors() -> None:
    """SSD's definition (Liu et al. 2016): widths grow by a ratio's root, heights shrink by it."""
    attrs = {"sizes": [0.5, 0.25], "ratios": [1.0, 2.0], "clip": True}
    case = Case("prior", "vision.multibox_prior", [normal(1, 2, 2, 3)], attrs, None)
    (got,) = constants(relay_to_relax(case.module()))
    expected = []
    for i in range(2):
        for j in range(3):
            y, x = (i + 0.5) / 2, (j + 0.5) / 3
            for size, ratio in ((0.5, 1), (0.25, 1), (0.5, 2)):
                w, h = size * 2 / 3 * ratio**0.5 / 2, size / ratio**0.5 / 2
                expected.append([x - w, y - h, x + w, y + h])
    np.testing.assert_allclose(got, np.clip([expected], 0, 1), rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "attrs", "message"),
    [
        ("yolo_reorg", {"stride": 4}, "stride is 4; it must divide"),
        (
            "roi_align",
            {"pooled_size": [2, 2], "spatial_scale": 1.0, "mode": "min"},
            "mode is 'min'; it must be avg or max",
        ),
        (
            "roi_pool",
            {"pooled_size": [2, 2], "spatial_scale": 1.0, "layout": "NHWC"},
            "layout is 'NHWC'; it must be NCHW",
        ),
    ],
)
def test_refusals(name: str, attrs: dict[str, object], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        relay_to_relax(Case("bad", f"vision.{name}", [X, REGIONS], attrs, None).module())
