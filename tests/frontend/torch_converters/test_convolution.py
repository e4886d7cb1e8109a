"""Convolutions: every rank, groups, dilation, transposed with output padding."""

import pytest

from ..torch_cases import Cases, normal, torch

# Of torch's own making, about speed.
pytestmark = pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel")
nn = torch.nn
X1, X2, X3 = normal(2, 4, 13), normal(2, 6, 9, 10), normal(1, 2, 5, 6, 7)
torch.manual_seed(0)

CASES = Cases(
    {
        "conv1d": (nn.Conv1d(4, 6, 3, stride=2, padding=1), X1),
        "conv2d": (nn.Conv2d(6, 8, (3, 2), padding=(1, 0), bias=False), X2),
        "conv2d_same": (nn.Conv2d(6, 8, 4, padding="same"), X2),
        "conv2d_reflect": (nn.Conv2d(6, 8, 3, padding=1, padding_mode="reflect"), X2),
        "conv2d_no_batch": (nn.Conv2d(6, 8, 3), X2[0]),
        "conv2d_weight_at_run_time": (nn.functional.conv2d, X2, normal(4, 6, 3, 3)),
        "depthwise": (nn.Conv2d(6, 6, 3, groups=6), X2),
        "grouped_dilated": (nn.Conv2d(6, 9, 3, groups=3, dilation=2), X2),
        "conv3d": (nn.Conv3d(2, 4, 3, padding=1), X3),
        "transposed1d": (nn.ConvTranspose1d(4, 6, 3, 2, 1, output_padding=1), X1),
        "transposed2d": (nn.ConvTranspose2d(6, 8, 3, 2, 1, output_padding=(1, 0)), X2),
        "transposed2d_grouped": (nn.ConvTranspose2d(6, 8, 3, 2, groups=2), X2),
        "transposed2d_dilated": (nn.ConvTranspose2d(6, 8, 3, 2, 1, dilation=2), X2),
        "transposed3d": (nn.ConvTranspose3d(2, 4, 3, 2, 1, output_padding=1), X3),
    }
)


@pytest.mark.parametrize("name", CASES.cases)
def test_matches_torch(name):
    CASES.check(name)
