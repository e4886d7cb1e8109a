"""Resize and Upsample against ONNX Runtime, and against ONNX's reference where that refuses."""

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from tvm_ext.errors import ModelError
from tvm_ext.frontend import load_model

from ..cases import Case, Cases, call, calls, compile_functions, normal

X = normal(1, 2, 5, 4)
NONE = np.zeros(0, "float32")
COORDINATES = ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")


def f(*values):
    return np.array(values, "float32")


def resize(name, *, scales=None, sizes=None, x=X, roi=None, opset=19, **attrs):
    inputs = [x, roi, scales, None if sizes is None else np.array(sizes)]
    while inputs[-1] is None:
        inputs.pop()
    return Case(name, "Resize", inputs, attrs, opset=opset)


CASES = Cases(
    [
        *[
            resize(
                f"nearest_{c}_{n}",
                sizes=[1, 2, 8, 3],
                coordinate_transformation_mode=c,
                nearest_mode=n,
            )
            for c in COORDINATES
            for n in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
        ],
        *[
            resize(f"{mode}_{c}_{size[2]}", sizes=size, mode=mode, coordinate_transformation_mode=c)
            for mode in ("linear", "cubic")
            for c in COORDINATES
            for size in ([1, 2, 9, 7], [1, 2, 3, 2])
        ],
        resize(
            "nearest_double",
            scales=f(1, 1, 2, 2),
            coordinate_transformation_mode="asymmetric",
            nearest_mode="floor",
        ),
        resize("nearest_double_half_pixel", scales=f(1, 1, 2, 3)),
        resize("linear_double", scales=f(1, 1, 2, 3), mode="linear"),
        resize(
            "linear_double_asymmetric",
            scales=f(1, 1, 2, 2),
            mode="linear",
            coordinate_transformation_mode="asymmetric",
        ),
        resize("linear_fraction", scales=f(1, 1, 1.7, 0.6), mode="linear"),
        resize("nearest_fraction", scales=f(1, 1, 0.6, 1.3)),
        resize("cubic_a", scales=f(1, 1, 1.5, 0.8), mode="cubic", cubic_coeff_a=-0.5),
        resize("cubic_exclude", scales=f(1, 1, 1.5, 2.2), mode="cubic", exclude_outside=1),
        resize("linear_3d", x=normal(1, 2, 3, 4, 3), scales=f(1, 1, 2, 1.5, 2), mode="linear"),
        resize("nearest_1d", x=normal(2, 3, 5), scales=f(1, 1, 2.4)),
        resize(
            "to_one_pixel",
            sizes=[1, 2, 1, 1],
            mode="linear",
            coordinate_transformation_mode="pytorch_half_pixel",
        ),
        resize("opset11", scales=f(1, 1, 2, 2), roi=NONE, opset=11, mode="linear"),
        resize("opset11_sizes", sizes=[1, 2, 10, 8], scales=NONE, roi=NONE, opset=11),
        Case("opset10", "Resize", [X, f(1, 1, 2, 3)], opset=10),
        resize("axes", scales=f(2.5, 0.5), axes=[3, 2]),
        resize("antialias_linear", scales=f(1, 1, 0.6, 0.5), mode="linear", antialias=1),
        resize("antialias_cubic", sizes=[1, 2, 2, 3], mode="cubic", antialias=1),
        resize("not_larger", sizes=[8, 9], axes=[2, 3], keep_aspect_ratio_policy="not_larger"),
        resize(
            "crop",
            sizes=[1, 2, 3, 6],
            roi=f(0, 0, 0.2, 0.1, 1, 1, 0.9, 1.3),
            mode="linear",
            coordinate_transformation_mode="tf_crop_and_resize",
            extrapolation_value=7.0,
        ),
        Case("upsample_opset9", "Upsample", [X, f(1, 1, 2, 3)], opset=9),
        Case("upsample_opset9_linear", "Upsample", [X, f(1, 1, 2, 3)], {"mode": "linear"}, opset=9),
        Case("upsample_opset7", "Upsample", [X], {"scales": [1.0, 1.0, 2.0, 2.0]}, opset=7),
    ]
)


@pytest.mark.parametrize("name", CASES.cases)
def test_matches_onnxruntime(name):
    CASES.check(name)


@pytest.mark.parametrize("name", ["nearest_double", "linear_double", "upsample_opset9"])
def test_whole_scales_are_relax_resize(name):
    assert calls(load_model(CASES.cases[name].model())) == ["relax.image.resize2d"]


@pytest.mark.parametrize("scale", [2.3, 0.7])
def test_half_pixel_symmetric_matches_the_reference(scale):
    case = resize(
        "symmetric",
        scales=f(1, 1, scale, scale),
        mode="linear",
        coordinate_transformation_mode="half_pixel_symmetric",
    )
    (wanted,) = ReferenceEvaluator(case.model()).run(None, case.feeds())
    (got,) = call(compile_functions({"f": load_model(case.model())["main"]}), "f", X)
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def test_unknown_mode_lists_the_modes():
    with pytest.raises(ModelError, match="'area'; it must be one of nearest, linear, cubic"):
        load_model(resize("area", scales=f(1, 1, 2, 2), mode="area").model())


def test_scales_at_run_time_are_refused():
    case = Case("runtime", "Resize", [X, None, f(1, 1, 2, 2)], runtime=(0, 2))
    with pytest.raises(ModelError, match="the input 'scales' must be constant"):
        load_model(case.model())
