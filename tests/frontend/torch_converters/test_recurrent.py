"""LSTM, GRU and RNN: layers, directions, states."""

import pytest

from tvm_ext.errors import ModelError
from tvm_ext.frontend import load_model

from ..torch_cases import Cases, export, normal, torch

# torch.export's, about attributes that torch's own recurrent modules assign.
pytestmark = pytest.mark.filterwarnings("ignore:The tensor attributes self")
nn = torch.nn
T, B, INPUT, HIDDEN = 2, 3, 5, 4
X = normal(T, B, INPUT)
torch.manual_seed(0)


def state(rows, seed, batch=B):
    return normal(rows, batch, HIDDEN, seed=seed)


CASES = Cases(
    {
        "lstm_deep": (
            nn.LSTM(INPUT, HIDDEN, 2, bidirectional=True), X, (state(4, 1), state(4, 2))
        ),
        "gru": (nn.GRU(INPUT, HIDDEN, batch_first=True), X, state(1, 1, T)),
        "rnn_tanh": (nn.RNN(INPUT, HIDDEN), X),
        "rnn_relu_no_bias": (nn.RNN(INPUT, HIDDEN, nonlinearity="relu", bias=False), X),
    }
)  # fmt: skip


@pytest.mark.parametrize("name", CASES.cases)
def test_matches_torch(name):
    CASES.check(name)


def test_projections_are_refused():
    with pytest.raises(ModelError, match="proj_size isn't supported"):
        load_model(export(nn.LSTM(INPUT, HIDDEN, proj_size=3), X))
