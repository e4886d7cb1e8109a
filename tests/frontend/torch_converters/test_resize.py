"""Interpolation in every mode, by factors and to sizes."""

import pytest

from ..torch_cases import Cases, normal, torch

interpolate = torch.nn.functional.interpolate
X = normal(2, 3, 9, 10)


def resized(x=X, **options):
    """Return a case of one set of options."""
    return lambda x: interpolate(x, **options), x


CASES = Cases(
    {
        "nearest_twice": resized(mode="nearest", scale_factor=2),
        # 8 / 1.6 is 5, but not in every rounding: which element is read differs.
        "nearest_by_factor": resized(mode="nearest", scale_factor=1.6),
        "nearest_to_size": resized(mode="nearest", size=(5, 17)),
        "nearest1d": resized(X[0], mode="nearest", scale_factor=2),
        "nearest3d": resized(X[None], mode="nearest", scale_factor=(2, 1, 2)),
        "nearest_exact_by_factor": resized(mode="nearest-exact", scale_factor=1.6),
        "bilinear_twice": resized(mode="bilinear", scale_factor=2),
        "bilinear_by_factor": resized(mode="bilinear", scale_factor=1.6),
        "bilinear_corners": resized(mode="bilinear", scale_factor=(1, 1.6), align_corners=True),
        "bilinear_antialiased": resized(mode="bilinear", size=(9, 6), antialias=True),
        "bicubic_to_size": resized(mode="bicubic", size=(9, 17)),
        "bicubic_antialiased": resized(mode="bicubic", size=(9, 6), antialias=True),
        "linear": resized(X[0], mode="linear", size=13),
        "trilinear": resized(X[None], mode="trilinear", size=(3, 5, 10)),
    }
)


@pytest.mark.parametrize("name", CASES.cases)
def test_matches_torch(name):
    CASES.check(name)
