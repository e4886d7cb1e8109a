"""Matrix products: ranks, biases, dtypes."""

import pytest

from ..torch_cases import Cases, normal, torch

A, B, C = normal(3, 7), normal(7, 5, seed=1), normal(2, 4, 8, seed=2)
torch.manual_seed(0)

CASES = Cases(
    {
        "linear": (torch.nn.Linear(8, 5), C),
        "linear_no_bias": (torch.nn.Linear(8, 5, bias=False), C),
        "linear_vector": (torch.nn.Linear(8, 5), C[0, 0]),
        "linear_weight_at_run_time": (torch.nn.functional.linear, C, normal(5, 8)),
        "mm": (torch.mm, A, B),
        "mm_double": (lambda a, b: a.double() @ b.double(), A, B),
        "mm_int": (lambda a: a @ a.T, torch.arange(12).reshape(3, 4)),
        "bmm": (lambda c: torch.bmm(c, c.transpose(1, 2)), C),
        "matmul_broadcast": (lambda c, d: c @ d, C, normal(8, 5)),
        "matmul_vector": (lambda a: a @ a[0], A),
        "matmul_4d": (lambda x: x @ x.transpose(-1, -2), normal(2, 3, 4, 5)),
        "addmm": (lambda a, b, c: torch.addmm(c, a, b, beta=0.5, alpha=2), A, B, normal(3, 5)),
        "baddbmm": (lambda c: torch.baddbmm(c[:, :, :4], c, c.mT, beta=0.5, alpha=2), C),
        "einsum": (lambda c: torch.einsum("bij,bkj->bik", c, c), C),
    }
)


@pytest.mark.parametrize("name", CASES.cases)
def test_matches_torch(name):
    CASES.check(name)
