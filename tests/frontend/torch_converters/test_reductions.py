"""Reductions, their axes and dtypes."""

import pytest

from ..torch_cases import Cases, normal, torch

X = normal(3, 7)
INTEGERS = torch.arange(-7, 8).reshape(3, 5)
NAMES = ("sum", "mean", "amax", "amin", "std", "var", "argmax", "max", "min", "any", "all")

CASES = Cases(
    {
        **{f"{name}_axis": (lambda x, n=name: getattr(torch, n)(x, dim=1), X) for name in NAMES},
        "sum_all": (torch.sum, X),
        "max_all": (torch.max, X),
        "any_all": (torch.any, X),
        "all_all": (torch.all, X),
        "argmax_all": (torch.argmax, X),
        "amax_two_axes": (lambda x: x.amax((1, 2), keepdim=True), normal(2, 3, 4)),
        "max_kept": (lambda x: x.max(0, keepdim=True), X),
        "any_bool": (lambda x: (x > 1).any(1), X),
        "prod": (lambda x: x.prod(1), X),
        "sum_int32": (lambda x: x.int().sum(1), INTEGERS),
        "sum_bool": (lambda x: (x > 0).sum(), INTEGERS),
        "var_population": (lambda x: x.var(1, unbiased=False), X),
        "var_mean": (lambda x: torch.var_mean(x, 1), X),
        "var_mean_all": (lambda x: torch.var_mean(x, correction=0), X),
        "logsumexp": (lambda x: torch.logsumexp(x, 1), X),
        "norm": (lambda x: x.norm(dim=1), X),
        "cumsum": (lambda x: x.cumsum(0), INTEGERS),
        "softmax_inner_axis": (lambda x: x.softmax(1), normal(2, 3, 4)),
        "topk": (lambda x: x.topk(3, 1), X),
        "sort": (lambda x: x.sort(1, descending=True), X),
    }
)


@pytest.mark.parametrize("name", CASES.cases)
def test_matches_torch(name):
    CASES.check(name)
