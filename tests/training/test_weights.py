"""Which parameters are weights, what they are called, and how schemes see them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.training.networks import nn, torch
from tvm_ext.errors import PruningError
from tvm_ext.training.weights import prunable_weights


class Everything(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Conv1d(2, 4, 3)
        self.two = nn.Conv2d(4, 4, (3, 5), groups=2)
        self.three = nn.Conv3d(1, 2, 3)
        self.back = nn.ConvTranspose2d(2, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.table = nn.Embedding(7, 5)
        self.lstm = nn.LSTM(5, 3, bidirectional=True)
        self.cell = nn.GRUCell(5, 2)
        self.attention = nn.MultiheadAttention(6, 2)
        self.first = nn.Linear(5, 7)
        self.tied = nn.Linear(5, 7)
        self.tied.weight = self.first.weight


def test_weights_of_every_kind_of_layer() -> None:
    found = {w.name: (w.kind, w.array().shape) for w in prunable_weights(Everything())}
    assert found == {
        "one": ("conv", (4, 2, 3)),
        "two": ("conv", (4, 2, 3, 5)),
        "three": ("conv", (2, 1, 3, 3, 3)),
        "lstm.weight_ih_l0": ("matrix", (12, 5)),
        "lstm.weight_hh_l0": ("matrix", (12, 3)),
        "lstm.weight_ih_l0_reverse": ("matrix", (12, 5)),
        "lstm.weight_hh_l0_reverse": ("matrix", (12, 3)),
        "cell.weight_ih": ("matrix", (6, 5)),
        "cell.weight_hh": ("matrix", (6, 2)),
        "attention.in_proj_weight": ("matrix", (18, 6)),
        "attention.out_proj": ("dense", (6, 6)),
        "first": ("dense", (7, 5)),
    }


def test_attention_with_keys_of_another_size_has_three_projections() -> None:
    names = [w.name for w in prunable_weights(nn.MultiheadAttention(6, 2, kdim=4, vdim=5))]
    assert names == ["q_proj_weight", "k_proj_weight", "v_proj_weight", "out_proj"]


def test_a_layer_that_is_the_model_has_its_parameters_name() -> None:
    assert [w.name for w in prunable_weights(nn.Linear(2, 2))] == ["weight"]


@pytest.mark.parametrize(
    ("dtype", "wanted"),
    [(torch.float64, "float64"), (torch.float32, "float32"), (torch.bfloat16, "float32")],
)
def test_arrays_have_the_parameters_values(dtype: torch.dtype, wanted: str) -> None:
    layer = nn.Linear(3, 2).to(dtype)
    array = prunable_weights(layer)[0].array()
    assert array.dtype == wanted
    np.testing.assert_array_equal(array, np.array(layer.weight.tolist()))


def test_weights_that_are_no_numbers_are_refused() -> None:
    layer = nn.Linear(3, 2)
    layer.weight.data[1, 2] = float("nan")
    (weight,) = prunable_weights(layer)
    with pytest.raises(PruningError, match=r"layer weight: the weight at \(1, 2\) is nan"):
        weight.array()


@pytest.mark.filterwarnings("ignore:Lazy modules are a new feature")
def test_layers_that_wait_for_their_first_input_are_refused() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.LazyLinear(3))
    with pytest.raises(PruningError, match="layer 1 has no weights yet: run the model once"):
        prunable_weights(model)
