"""Slices, gathers, windows and broadcasts."""

import numpy as np
import pytest

import tvm_ext
from tvm_ext.errors import ModelError
from tvm_ext.frontend import load_model

from ..torch_cases import Cases, export, normal, torch

X = normal(2, 6, 9, 10)
ROWS = normal(4, 7)
CUBE = normal(2, 4, 8)


def ints(*values):
    return torch.tensor(values)


CASES = Cases(
    {
        "select": (lambda x: x[:, 1], X),
        "select_negative": (lambda x: x[:, -1], X),
        "slice": (lambda x: x[:, 1:4, :-2, 2:8:3], X),
        "slice_negative": (lambda x: x[..., -3:-1], X),
        "slice_beyond": (lambda x: x[:, 3:50], X),
        "index_select": (lambda x, i: x.index_select(1, i), ROWS, ints(3, 0, 6)),
        "index_rows": (lambda x, i: x[i], ROWS, ints(2, -1)),
        "index_columns": (lambda x, i: x[:, i], ROWS, torch.tensor([[3, -1], [6, 0]])),
        "index_pairs": (lambda x, i, j: x[i, j], ROWS, ints(2, 0), ints(1, -1)),
        "index_int32": (lambda x, i, j: x[i, j], ROWS, ints(2, 0).int(), ints(1, -1)),
        "index_last_pairs": (lambda x, i, j: x[:, i, j], CUBE, ints(2, 0, 1), ints(1, 3, 2)),
        "index_apart": (lambda x, i, j: x[i, :, j], CUBE, ints(1, 0, 1), ints(1, -3, 2)),
        "index_outer": (lambda x, i, j: x[i[:, None], j], ROWS, ints(2, 0, 1), ints(1, 3)),
        "index_known": (lambda x: x[torch.arange(4), [6, 5, -2, 1]], ROWS),
        "index_best": (lambda x: x[torch.arange(4), x.argmax(1)], ROWS),
        "gather": (
            lambda x, i: x.gather(1, i),
            ROWS,
            torch.tensor([[0, 6], [1, 2], [3, 3], [4, 0]]),
        ),
        "embedding": (torch.nn.Embedding(10, 4), torch.tensor([[1, 9, 0], [4, 4, 2]])),
        "embedding_int32": (torch.nn.Embedding(10, 4), torch.tensor([3, 0], dtype=torch.int32)),
        "one_hot": (lambda i: torch.nn.functional.one_hot(i, 5), ints(1, 4, 0)),
        "windows": (lambda x: x.unfold(1, 3, 2), ROWS),
        "windows_last": (lambda x: x.unfold(-1, 4, 3), CUBE),
        "patches": (lambda x: torch.nn.functional.unfold(x, 3, stride=2), X),
        "expand": (lambda x: x[:, :, None].expand(-1, -1, 4) + 0, ROWS),
        "repeat_interleave": (lambda x: x.repeat_interleave(2, 1), ROWS),
        "roll": (lambda x: x.roll((1, -2), (2, 3)), X),
        "triangle": (torch.tril, ROWS),
        "replicate": (lambda x: torch.nn.functional.pad(x, (1, 2, 3, 1), mode="replicate"), X),
        "assign_slice": (lambda x: _assigned(x, np.s_[:, 1:3]), ROWS),
        "assign_column": (lambda x: _assigned(x, np.s_[:, 1]), ROWS),
    }
)


def _assigned(x, where):
    x = x.clone()
    x[where] = 7.0
    return x


@pytest.mark.parametrize("name", CASES.cases)
def test_matches_torch(name):
    CASES.check(name)


def test_a_row_out_of_range_reads_the_last_one_not_memory_behind_it():
    embedding = torch.nn.Embedding(10, 4)
    exe = tvm_ext.build(export(embedding, ints(1, 2)))
    np.testing.assert_array_equal(
        exe(np.array([10**6, 9])), np.tile(embedding.weight[9].detach(), (2, 1))
    )


class Masked(torch.nn.Module):
    def forward(self, x, mask):
        return x[mask]


def test_what_depends_on_the_data_is_refused():
    program = export(Masked(), ROWS, ROWS > 0)
    with pytest.raises(ModelError, match=r"index.*shape would depend on the data"):
        load_model(program)
