"""Arithmetic, comparisons and activations, and the dtypes that torch promotes to."""

import pytest

from ..torch_cases import Cases, normal, torch

F = torch.nn.functional
X = normal(3, 7)
Y = normal(3, 7, seed=1)
POSITIVE = X.abs() + 0.1
INTEGERS = torch.arange(-7, 8).reshape(3, 5)
FLAGS = X > 0

CASES = Cases(
    {
        # alpha is a third operand
        "add_alpha": (lambda a, b: torch.add(a, b, alpha=2), X, Y),
        "sub_alpha": (lambda a: torch.sub(a, 2, alpha=3), X),
        "rsub": (lambda a: 1 - a, INTEGERS),
        # dtypes
        "int_times_float": (lambda a: a * 0.5, INTEGERS),
        "int_over_int": (lambda a: a / 2, INTEGERS),
        "int_plus_float": (lambda a, b: a + b, INTEGERS, normal(5)),
        "int32_plus_int64": (lambda a: a.int() + a, INTEGERS),
        "int_above_float": (lambda a: a > 1.5, INTEGERS),
        "int_root": (lambda a: torch.sqrt(a.abs()), INTEGERS),
        "int_exp": (torch.exp, INTEGERS),
        "bool_times_float": (lambda a, b: a * b, FLAGS, X),
        "bool_plus_int": (lambda a: a + 1, FLAGS),
        "bool_or": (lambda a, b: a + b, FLAGS, Y > 0),
        "bool_and": (lambda a, b: a * b, FLAGS, Y > 0),
        "double": (lambda a: a.double() * 2, X),
        "scalar_tensor": (lambda a: a * torch.tensor(2.5), X),
        # divisions
        "floor_int": (lambda a: a // 2, INTEGERS),
        "trunc_int": (lambda a: torch.div(a, 2, rounding_mode="trunc"), INTEGERS),
        "floor_float": (lambda a: torch.div(a, 0.3, rounding_mode="floor"), X),
        "trunc_float": (lambda a: torch.div(a, 0.3, rounding_mode="trunc"), X),
        "remainder_int": (lambda a: a % 3, INTEGERS),
        "remainder": (torch.remainder, X, POSITIVE),
        "fmod_int": (lambda a: torch.fmod(a, 3), INTEGERS),
        "fmod": (torch.fmod, X, POSITIVE),
        # powers
        "square": (lambda a: a**2, X),
        "cube": (lambda a: a**3, X),
        "fourth": (lambda a: a**4, X),
        "root": (lambda a: a**0.5, POSITIVE),
        "inverse": (lambda a: a**-1, POSITIVE),
        "power": (lambda a, b: a**b, POSITIVE, Y),
        "power_of_two": (lambda a: 2**a, X),
        "exp2": (torch.exp2, X),
        "int_square": (lambda a: a**2, INTEGERS),
        # choices
        "where": (torch.where, FLAGS, X, Y),
        "where_number": (lambda c, a: torch.where(c, a, 0), FLAGS, X),
        "where_known": (lambda a: torch.where(torch.ones(7) > 0, a, a * 2), X),
        "lerp": (lambda a, b: torch.lerp(a, b, 0.3), X, Y),
        "maximum": (torch.maximum, X, Y),
        "clamp_below": (lambda a: a.clamp(min=0.1), X),
        "clamp_above": (lambda a: torch.clamp_max(a, 0.1), X),
        "not_equal": (lambda a: a != 2, INTEGERS),
        "isfinite": (lambda a: torch.isfinite(1 / a), torch.tensor([0.0, 1.0])),
        "logaddexp": (torch.logaddexp, X, Y),
        # activations
        "elu": (lambda a: F.elu(a, 0.5), X),
        "selu": (F.selu, X),
        "celu": (lambda a: F.celu(a, 2.0), X),
        "gelu_tanh": (lambda a: F.gelu(a, approximate="tanh"), X),
        "hardsigmoid": (F.hardsigmoid, X * 4),
        "hardswish": (F.hardswish, X * 4),
        "hardtanh": (lambda a: F.hardtanh(a, -0.5, 0.7), X),
        "mish": (F.mish, X),
        "silu": (F.silu, X),
        "erfc": (torch.erfc, X),
        "softplus": (F.softplus, X),
        "softplus_beta": (lambda a: F.softplus(a, 2, 20), X),
        "softplus_threshold": (lambda a: F.softplus(a, 2, 1), X),
        "prelu": (torch.nn.PReLU(7), X),
    }
)


@pytest.mark.parametrize("name", CASES.cases)
def test_matches_torch(name):
    CASES.check(name)
