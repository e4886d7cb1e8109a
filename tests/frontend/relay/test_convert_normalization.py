"""Normalisations against their formulas in float64, and images against torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.frontend.cases import calls, normal
from tests.frontend.relay.convert_cases import Case, Cases
from tvm_ext.errors import ModelError
from tvm_ext.frontend.relay.convert import relay_to_relax

X = normal(2, 6, 5, 4)
WIDE = X.astype("float64")
GAMMA, BETA, MEAN = normal(6, seed=1), normal(6, seed=2), normal(6, seed=3)
VARIANCE = np.abs(normal(6, seed=4)) + 0.5


def column(v: np.ndarray) -> np.ndarray:
    return v[:, None, None]


def standardized(x: np.ndarray, axes: tuple[int, ...], epsilon: float) -> np.ndarray:
    x = x.astype("float64")
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)


def f32(x: np.ndarray) -> np.ndarray:
    return np.asarray(x, "float32")


GROUPED = standardized(X.reshape(2, 3, 2, 5, 4), (2, 3, 4), 1e-3).reshape(X.shape)
BATCH = (WIDE - column(MEAN)) / np.sqrt(column(VARIANCE) + 1e-3)


def lrn(x: np.ndarray, size: int, alpha: float, beta: float, bias: float) -> np.ndarray:
    y = np.zeros(x.shape)
    for c in range(x.shape[1]):
        near = x[:, max(c - size // 2, 0) : c + size // 2 + 1].astype("float64")
        y[:, c] = x[:, c] / (bias + alpha / size * (near**2).sum(1)) ** beta
    return y.astype(x.dtype)


def resized(x: np.ndarray, size: list[int], mode: str, corners: bool | None) -> np.ndarray:
    return torch.nn.functional.interpolate(
        torch.from_numpy(x), size=size, mode=mode, align_corners=corners
    ).numpy()


def nchw(x: np.ndarray) -> np.ndarray:
    return x.transpose(0, 2, 3, 1)


ROW, VOLUME = normal(1, 2, 6), normal(1, 2, 3, 4, 5)
GRID = np.tanh(normal(2, 2, 3, 4, seed=9))
THETA = normal(2, 2, 3, seed=8)
BOXES = np.array([[0.0, 0.0, 1.0, 1.0], [0.1, 0.2, 0.6, 0.9]], "float32")


def cropped(x: np.ndarray, box: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """TensorFlow's crop_and_resize, bilinear, of one image (C, H, W)."""
    y = np.zeros((x.shape[0], *size))
    y1, x1, y2, x2 = box.astype("float64")
    height, width = x.shape[1] - 1, x.shape[2] - 1
    for i in range(size[0]):
        for j in range(size[1]):
            v = y1 * height + i * (y2 - y1) * height / (size[0] - 1)
            u = x1 * width + j * (x2 - x1) * width / (size[1] - 1)
            a, b = min(int(v), height - 1), min(int(u), width - 1)
            v, u = v - a, u - b
            y[:, i, j] = (
                x[:, a, b] * (1 - v) * (1 - u) + x[:, a, b + 1] * (1 - v) * u
                + x[:, a + 1, b] * v * (1 - u) + x[:, a + 1, b + 1] * v * u
            )  # fmt: skip
    return y.astype(x.dtype)


CASES = Cases(
    [
        Case(
            "batch_norm",
            "nn.batch_norm",
            [X, GAMMA, BETA, MEAN, VARIANCE],
            {"epsilon": 1e-3},
            [f32(BATCH * column(GAMMA) + column(BETA)), MEAN, VARIANCE],
        ),
        Case(
            "batch_norm_plain",
            "nn.batch_norm",
            [nchw(X), GAMMA, BETA, MEAN, VARIANCE],
            {"epsilon": 1e-3, "axis": 3, "scale": False, "center": False},
            [nchw(f32(BATCH)), MEAN, VARIANCE],
        ),
        Case(
            "layer_norm",
            "nn.layer_norm",
            [X, GAMMA[:4], BETA[:4]],
            {"axis": -1, "epsilon": 1e-3},
            f32(standardized(X, (3,), 1e-3) * GAMMA[:4] + BETA[:4]),
        ),
        Case(
            "layer_norm_inner",
            "nn.layer_norm",
            [X, GAMMA, BETA],
            {"axis": 1, "center": False},
            f32(standardized(X, (1,), 1e-5) * column(GAMMA)),
        ),
        Case(
            "instance_norm",
            "nn.instance_norm",
            [X, GAMMA, BETA],
            {"epsilon": 1e-3},
            f32(standardized(X, (2, 3), 1e-3) * column(GAMMA) + column(BETA)),
        ),
        Case(
            "group_norm",
            "nn.group_norm",
            [X, GAMMA, BETA],
            {"num_groups": 3, "epsilon": 1e-3},
            f32(GROUPED * column(GAMMA) + column(BETA)),
        ),
        Case(
            "l2",
            "nn.l2_normalize",
            [X],
            {"axis": [1], "eps": 1e-3},
            f32(X / np.sqrt(np.maximum((WIDE**2).sum(1, keepdims=True), 1e-3))),
        ),
        Case(
            "lrn",
            "nn.lrn",
            [X],
            {"size": 3, "alpha": 0.5, "beta": 0.75, "bias": 2.0},
            lrn(X, 3, 0.5, 0.75, 2.0),
        ),
        Case(
            "lrn_last",
            "nn.lrn",
            [nchw(X)],
            {"size": 5, "axis": 3, "alpha": 0.5, "bias": 1.0},
            nchw(lrn(X, 5, 0.5, 0.75, 1.0)),
        ),
        Case(
            "upsampling",
            "nn.upsampling",
            [X],
            {"scale_h": 2.0, "scale_w": 3.0},
            X.repeat(2, 2).repeat(3, 3),
        ),
        Case(
            "upsampling_corners",
            "nn.upsampling",
            [nchw(X)],
            {
                "scale_h": 2.0,
                "scale_w": 3.0,
                "method": "bilinear",
                "align_corners": True,
                "layout": "NHWC",
            },
            nchw(resized(X, [10, 12], "bilinear", True)),
        ),
        Case(
            "upsampling3d",
            "nn.upsampling3d",
            [VOLUME],
            {"scale_d": 2.0, "scale_h": 2.0, "scale_w": 2.0, "method": "trilinear"},
            resized(VOLUME, [6, 8, 10], "trilinear", False),
        ),
        Case(
            "resize1d",
            "image.resize1d",
            [ROW],
            {"size": [9], "rounding_method": ""},
            resized(ROW, [9], "linear", False),
        ),
        Case(
            "resize2d",
            "image.resize2d",
            [X],
            {"size": [7, 9], "method": "linear"},
            resized(X, [7, 9], "bilinear", False),
        ),
        Case(
            "resize2d_cubic",
            "image.resize2d",
            [X],
            {"size": [7, 9], "method": "cubic", "cubic_alpha": -0.75},
            resized(X, [7, 9], "bicubic", False),
            rtol=1e-4,
        ),
        Case(
            "resize2d_nearest",
            "image.resize2d",
            [X],
            {
                "size": [10, 8],
                "method": "nearest_neighbor",
                "coordinate_transformation_mode": "asymmetric",
                "rounding_method": "floor",
            },
            resized(X, [10, 8], "nearest", None),
        ),
        # By hand: the 3 rows are at 0, 1.5 and 3; halves go up.
        Case(
            "resize2d_halves",
            "image.resize2d",
            [np.arange(8, dtype="float32").reshape(1, 1, 4, 2)],
            {
                "size": [3, 2],
                "method": "nearest_neighbor",
                "coordinate_transformation_mode": "align_corners",
                "rounding_method": "round",
            },
            np.array([[[[0, 1], [4, 5], [6, 7]]]], "float32"),
        ),
        Case(
            "resize3d",
            "image.resize3d",
            [VOLUME],
            {"size": [5, 6, 7], "coordinate_transformation_mode": "align_corners"},
            resized(VOLUME, [5, 6, 7], "trilinear", True),
        ),
        Case(
            "crop",
            "image.crop_and_resize",
            [X, BOXES, np.array([1, 0], "int32")],
            {"crop_size": [3, 4]},
            np.stack([cropped(X[1], BOXES[0], (3, 4)), cropped(X[0], BOXES[1], (3, 4))]),
            rtol=1e-4,
        ),
        Case(
            "grid_sample",
            "image.grid_sample",
            [X, GRID],
            {"align_corners": True},
            torch.nn.functional.grid_sample(
                torch.from_numpy(X),
                torch.from_numpy(GRID.transpose(0, 2, 3, 1).copy()),
                align_corners=True,
            ).numpy(),
            runtime=(0, 1),
        ),
        Case(
            "affine_grid",
            "image.affine_grid",
            [THETA],
            {"target_shape": [3, 4]},
            torch.nn.functional.affine_grid(
                torch.from_numpy(THETA), [2, 1, 3, 4], align_corners=True
            )
            .numpy()
            .transpose(0, 3, 1, 2),
        ),
    ]
)


@pytest.mark.parametrize("name", CASES.cases)
def test_operator(name: str) -> None:
    CASES.check(name)


def test_batch_norm_has_the_form_that_later_passes_know() -> None:
    module = relay_to_relax(CASES.cases["batch_norm"].module())
    assert calls(module) == ["relax.nn.batch_norm"]


@pytest.mark.parametrize(
    ("op", "attrs", "message"),
    [
        ("nn.upsampling", {"scale_h": 2, "scale_w": 2, "method": "x"}, "nearest_neighbor, "),
        ("image.resize2d", {"size": [2, 2], "rounding_method": "x"}, "round, floor"),
        (
            "image.resize2d",
            {"size": [2, 2], "coordinate_transformation_mode": "x"},
            "half_pixel, align_corners, asymmetric",
        ),
    ],
)
def test_refusals(op, attrs, message) -> None:
    with pytest.raises(ModelError, match=message):
        relay_to_relax(Case("bad", op, [X], attrs, None).module())
