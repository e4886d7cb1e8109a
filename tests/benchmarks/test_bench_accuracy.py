"""The table of the accuracy benchmark, and that its schemes leave as little as it says."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("sklearn")

from benchmarks import digits  # noqa: E402
from benchmarks.bench_accuracy import (  # noqa: E402
    BLOCKS,
    HEADER,
    MAGNITUDE,
    PATTERN,
    Outcome,
    check_compiled,
    good,
    row,
    schemes,
    section,
)
from tvm_ext.training import ADMM, FineTune, admm_prune  # noqa: E402

IMAGE = torch.zeros(1, 1, 8, 8)


@pytest.mark.parametrize("make", [digits.VggLike, digits.ResNetLike])
def test_every_way_leaves_an_eighth_of_the_macs(make: Any) -> None:
    torch.manual_seed(0)
    model = make()
    dense = digits.count_macs(model, IMAGE)
    by_way = schemes(model, IMAGE)
    assert list(by_way) == [PATTERN, BLOCKS, MAGNITUDE]
    for by_layer in by_way.values():
        pruned = admm_prune(
            model, [], torch.nn.functional.cross_entropy, by_layer, admm=ADMM(0),
            fine_tune=FineTune(0), progress=False,
        )  # fmt: skip
        assert 8 <= dense / digits.count_macs(pruned.model, IMAGE) < 8.4
        assert pruned.skipped == {}


OUTCOMES = [Outcome(8.25, 0.99, 0.3, 0.985), Outcome(8.35, 0.97, 0.5, 0.969)]


def test_cells_are_means_over_the_folds() -> None:
    cells = row("digits", "net", BLOCKS, OUTCOMES)
    assert cells[3:] == ["8.30", "98.00", "40.00", "97.70", "0.30", "0.50"]
    assert len(cells) == len(HEADER)
    untrained = row("digits", "net", MAGNITUDE, [Outcome(8.3, 0.99, 0.3, None)])
    assert untrained[3:] == ["8.30", "99.00", "30.00", "", "", ""]
    assert "| digits | net |" in section([cells, untrained], 5)


@pytest.mark.parametrize(
    ("outcomes", "wanted"),
    [
        (OUTCOMES, True),
        ([Outcome(7.99, 0.99, 0.3, 0.99)], False),
        ([Outcome(8.0, 0.99, 0.3, 0.9849)], False),
        ([Outcome(8.0, 0.99, 0.3, 0.9851)], True),
        ([Outcome(8.0, 0.99, 0.3, None)], True),
    ],
)
def test_what_is_good(outcomes: list[Outcome], wanted: bool) -> None:
    assert good(outcomes) is wanted


def test_a_compiled_model_that_differs_is_an_error() -> None:
    class Noisy(torch.nn.Module):
        """Adds one when it isn't being exported."""

        def forward(self, x: Any) -> Any:
            return x + (0.0 if torch.compiler.is_exporting() else 1.0)

    with pytest.raises(RuntimeError, match=r"differ from PyTorch's by 5.0e-01"):
        check_compiled(Noisy(), torch.ones(1, 3))
    check_compiled(torch.nn.ReLU(), torch.ones(1, 3))
