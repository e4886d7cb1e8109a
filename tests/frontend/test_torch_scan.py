"""What can't be converted: the list of operators is complete, with every node."""

import pytest

import tvm_ext
from tvm_ext.errors import ModelError, UnsupportedOperatorsError
from tvm_ext.frontend import load_model

from .torch_cases import compare, export, normal, run, torch

nn = torch.nn
aten = torch.ops.aten


class Inner(nn.Module):
    def forward(self, x):
        return torch.digamma(x)


class Odd(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x):
        # The second argument's value is known: torch computes it at import.
        y = torch.digamma(torch.relu(x)) + torch.digamma(torch.ones(3))
        return self.inner(y) + torch.histc(y, 3)


def test_all_unsupported_operators_and_nodes_are_listed_at_once():
    with pytest.raises(UnsupportedOperatorsError) as caught:
        load_model(export(Odd(), normal(2, 3)))
    assert caught.value.nodes == {
        "aten::digamma": ("digamma", "digamma_2 (in inner)"),
        "aten::histc": ("histc",),
    }
    message = str(caught.value)
    assert "aten::digamma: digamma, digamma_2 (in inner)" in message
    assert "run_decompositions" in message


# Torch copies one of its own deprecated objects.
@pytest.mark.filterwarnings("ignore:`isinstance.treespec, LeafSpec.` is deprecated")
def test_a_decomposition_makes_an_operator_supported():
    class Hypotenuse(nn.Module):
        def forward(self, x, y):
            return torch.hypot(x, y)

    x, y = normal(2, 3), normal(2, 3, seed=1)
    program = export(Hypotenuse(), x, y)
    with pytest.raises(UnsupportedOperatorsError, match="aten::hypot"):
        load_model(program)
    table = {aten.hypot.default: lambda a, b: torch.sqrt(a * a + b * b)}
    exe = tvm_ext.build(program.run_decompositions(table))
    compare(run(exe, x, y)[0], torch.hypot(x, y).numpy())


class Noise(nn.Module):
    def forward(self, x):
        return x + torch.randn(3)


class Branch(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda v: v + 1, lambda v: v - 1, (x,))


class Selected(nn.Module):
    def forward(self, x):
        return x.nonzero()


@pytest.mark.parametrize(
    ("module", "operator"),
    [(Noise(), "aten::randn"), (Branch(), "cond"), (Selected(), "aten::nonzero")],
)
def test_random_numbers_branches_and_unknown_shapes_are_unsupported(module, operator):
    with pytest.raises(UnsupportedOperatorsError) as caught:
        load_model(export(module, normal(2, 3)))
    assert list(caught.value.nodes) == [operator]


@torch.library.custom_op("tvm_ext_test::relu", mutates_args=())
def _custom(x: torch.Tensor) -> torch.Tensor:
    return x + 1


@_custom.register_fake
def _(x):
    return torch.empty_like(x)


class Custom(nn.Module):
    def forward(self, x):
        return _custom(x)


def test_an_operator_of_another_library_is_not_its_namesake():
    with pytest.raises(UnsupportedOperatorsError, match="tvm_ext_test::relu"):
        load_model(export(Custom(), normal(2, 3)))


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(3))

    def forward(self, x):
        self.count.add_(1)
        return x + self.count


class Overwriting(nn.Module):
    def forward(self, x):
        return x.add_(1)


def test_programs_with_state_are_refused():
    with pytest.raises(ModelError, match=r"buffer mutation \('count'\).* keeps no state"):
        load_model(export(Counter(), normal(3)))
    with pytest.raises(ModelError, match=r"user input mutation \('x'\)"):
        load_model(export(Overwriting(), normal(3)))
    training = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)).train()
    with pytest.raises(ModelError, match=r"training mode, call its eval\(\)"):
        load_model(torch.export.export(training, (normal(2, 3, 8, 8),)))


class Number(nn.Module):
    def forward(self, x):
        return x, x.shape[0]


def test_outputs_that_are_not_tensors_are_refused():
    with pytest.raises(ModelError, match="the output 'output1' is 2; only tensors"):
        load_model(export(Number(), normal(2, 3)))


def test_a_converter_that_fails_names_the_node():
    class Peaks(nn.Module):
        def forward(self, x):
            return nn.functional.max_pool2d(x, 2, return_indices=True)

    with pytest.raises(ModelError, match=r"node 'getitem_1'.*result 1 isn't supported"):
        load_model(export(Peaks(), normal(1, 2, 4, 4)))
