"""grid_sample: methods, padding, corners."""

import pytest

from ..torch_cases import Cases, normal, torch

X = normal(2, 3, 6, 7)
# Beyond -1 and 1 too, where padding decides.
GRID = normal(2, 4, 5, 2, seed=1).clamp(-1.5, 1.5)


def sampled(**options):
    return lambda x, grid: torch.nn.functional.grid_sample(x, grid, **options), X, GRID


CASES = Cases(
    {
        "zeros": sampled(align_corners=False),
        "border_corners": sampled(align_corners=True, padding_mode="border"),
        "nearest": sampled(align_corners=False, mode="nearest"),
    }
)


@pytest.mark.parametrize("name", CASES.cases)
def test_matches_torch(name):
    CASES.check(name)
