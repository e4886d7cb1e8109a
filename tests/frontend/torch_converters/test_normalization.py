"""Normalisations, with and without weights of their own."""

import pytest

from ..torch_cases import Cases, normal, torch

nn = torch.nn
IMAGE, ROWS = normal(2, 6, 5, 7), normal(2, 4, 8)


def trained(module):
    """Give a batch norm statistics and weights that aren't zeros and ones."""
    generator = torch.Generator().manual_seed(0)
    for tensor in (module.running_mean, module.running_var, module.weight.data, module.bias.data):
        tensor.uniform_(0.5, 2, generator=generator)
    return module


CASES = Cases(
    {
        "batch": (trained(nn.BatchNorm2d(6)), IMAGE),
        "batch_no_affine": (nn.BatchNorm2d(6, affine=False), IMAGE),
        "batch_of_the_input": (nn.BatchNorm2d(6, track_running_stats=False), IMAGE),
        "layer": (nn.LayerNorm(8), ROWS),
        "layer_no_affine": (nn.LayerNorm(8, elementwise_affine=False), ROWS),
        "layer_no_bias": (nn.LayerNorm(8, bias=False), ROWS),
        "layer_two_axes": (nn.LayerNorm((5, 7)), IMAGE),
        "group": (nn.GroupNorm(3, 6), IMAGE),
        "group_no_affine": (nn.GroupNorm(3, 6, affine=False), IMAGE),
        "instance_affine": (nn.InstanceNorm2d(6, affine=True), IMAGE),
        "rms": (nn.RMSNorm(8), ROWS),
        "local_response": (nn.LocalResponseNorm(3), IMAGE),
        "unit_length": (lambda x: nn.functional.normalize(x, dim=-1), ROWS),
    }
)


@pytest.mark.parametrize("name", CASES.cases)
def test_matches_torch(name):
    CASES.check(name)
