"""Assignments and sums into the elements that an index names."""

import pytest

from tvm_ext.errors import ModelError
from tvm_ext.frontend import load_model

from ..torch_cases import Cases, export, normal, torch

X = normal(4, 7)
CUBE = normal(2, 4, 5)
COLUMNS = torch.tensor([[0, 2], [1, 3], [5, 6], [6, 0]])
ROWS = torch.tensor([0, -1, 2])


def put(x, indices, values, accumulate=False):
    return torch.ops.aten.index_put(x, indices, values, accumulate)


CASES = Cases(
    {
        "slice": (lambda x, s: x.slice_scatter(s, 1, 2, 5), X, normal(4, 3)),
        "slice_steps": (lambda x, s: x.slice_scatter(s, 1, -6, 50, 2), X, normal(4, 3)),
        "slice_all": (lambda x, s: x.slice_scatter(s, 0), X, normal(4, 7)),
        "slice_nothing": (lambda x: x.slice_scatter(x[:0], 0, 3, 2), X),
        "scatter": (lambda x, i, s: x.scatter(1, i, s), X, COLUMNS, normal(4, 2)),
        "scatter_value": (lambda x, i: x.scatter(1, i, 5.0), X, COLUMNS),
        "scatter_add": (lambda x, i, s: x.scatter_add(1, i, s), X, COLUMNS * 0, normal(4, 2)),
        "index_add": (lambda x, i, s: x.index_add(0, i, s), X, torch.tensor([1, 1]), normal(2, 7)),
        "put_rows": (lambda x, i, v: put(x, [i], v), X, ROWS, normal(3, 7)),
        "put_columns": (lambda x, i, v: put(x, [None, i], v), X, ROWS, normal(4, 3)),
        "put_broadcast": (lambda x, i, v: put(x, [i], v), X, ROWS, normal(1)),
        "put_pairs": (lambda x, i, v: put(x, [i, i], v), X, ROWS, normal(3)),
        "put_inside": (lambda x, i, v: put(x, [None, i, i], v, True), CUBE, ROWS, normal(2, 3)),
        "fold": (
            lambda x: torch.nn.functional.fold(x, (4, 5), 2),
            normal(1, 8, 12),
        ),
    }
)


@pytest.mark.parametrize("name", CASES.cases)
def test_matches_torch(name):
    CASES.check(name)


class Put(torch.nn.Module):
    def __init__(self, indices):
        super().__init__()
        self.indices = indices

    def forward(self, x):
        return put(x, self.indices, torch.zeros(1))


def test_indices_apart_are_refused():
    with pytest.raises(ModelError, match=r"axes \[0, 2\], which don't lie side by side"):
        load_model(export(Put([ROWS[:1], None, ROWS[:1]]), CUBE))


class PutWhere(torch.nn.Module):
    def forward(self, x, mask):
        return put(x, [mask], torch.zeros(()))


def test_a_mask_is_refused():
    with pytest.raises(ModelError, match="boolean mask as index isn't supported"):
        load_model(export(PutWhere(), X, X > 0))
