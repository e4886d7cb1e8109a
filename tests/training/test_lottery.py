"""Lottery tickets: densities, nested masks, rewinding, resuming."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.training.networks import convnet, cross_entropy, images, nn, same, torch
from tvm_ext.errors import OptionError, PruningError
from tvm_ext.passes.pruning import LotteryTicket
from tvm_ext.training import EarlyStop, FineTune, find_ticket

TICKET = LotteryTicket(0.5)


def find(**options: Any) -> Any:
    options = {"warm_up": FineTune(1), "training": FineTune(2), "progress": False, **options}
    return find_ticket(convnet(dropout=0.5), images(), cross_entropy, TICKET, **options)


def test_rounds_go_down_to_the_density() -> None:
    result = find()
    kept = sum(mask.sum() for mask in result.masks.values())
    total = sum(mask.size for mask in result.masks.values())
    assert set(result.masks) == {"3", "5"}
    assert kept == round(0.5 * total)
    for name, mask in result.masks.items():
        np.testing.assert_array_equal(result.model[int(name)].weight.detach() != 0, mask)
    stages = [(epoch.stage, epoch.number) for epoch in result.history]
    assert stages == [("warm_up", 0)] + [("lottery", i) for i in range(5) for _ in range(2)]


def test_each_round_drops_the_smallest_trained_weights_and_rewinds_the_rest() -> None:
    """The weights at each validation are followed by hand: one layer, plain gradient descent."""
    layer = nn.Linear(10, 1, bias=False)
    start = torch.tensor([[0.5, -1.0, 0.2, 2.0, -0.3, 1.5, 0.1, -0.7, 0.9, 3.0]])
    layer.weight.data = start.clone()
    # The loss' gradient is a constant, so that each epoch moves all weights by it.
    drift = torch.tensor([[1.0, 0.0, 0.0, 1.95, 0.0, 1.45, -1.0, 0.0, 0.0, 0.0]])
    batches = [(torch.eye(10), drift)]
    seen: list[Any] = []

    def validate(model: Any) -> float:
        seen.append(model.weight.detach().clone())
        return 0.0

    result = find_ticket(
        layer, batches, lambda y, d: (y.T * d).sum(), LotteryTicket(0.6), layers="weight",
        warm_up=FineTune(0), training=FineTune(1, learning_rate=1.0, decay="constant"),
        optimizer=torch.optim.SGD, validate=validate, progress=False,
    )  # fmt: skip
    # Trained: -0.5 -1 .2 .05 -.3 .05 1.1 -.7 .9 3. Two go in each of two rounds.
    first, second = torch.ones(1, 10), torch.ones(1, 10)
    first[0, [3, 5]] = 0
    second[0, [3, 5, 2, 4]] = 0
    densities = LotteryTicket(0.6).densities
    assert [round(10 * d) for d in densities] == [10, 8, 6, 6]
    torch.testing.assert_close(seen[1], start - drift)
    torch.testing.assert_close(seen[2], (start - drift) * first)
    torch.testing.assert_close(seen[3], (start - drift) * second)
    torch.testing.assert_close(result.model.weight, seen[4])


def test_rewinding_goes_to_the_end_of_the_warm_up() -> None:
    seen: list[Any] = []

    def validate(model: Any) -> float:
        seen.append({n: v.clone() for n, v in model.state_dict().items()})
        return 0.0

    result = find(training=FineTune(0), validate=validate)
    # Seen before and after the warm-up; tickets aren't trained, and so are what they start from.
    assert len(seen) == 2
    for name, value in seen[1].items():
        mask = result.masks.get(name.removesuffix(".weight"))
        wanted = value if mask is None else value * torch.tensor(mask)
        torch.testing.assert_close(result.model.state_dict()[name], wanted)


def test_resuming_gives_the_same_bits(tmp_path: Path) -> None:
    whole, epochs = find(seed=2), 0

    def stop(_: Any) -> float:
        nonlocal epochs
        epochs += 1
        if epochs == 3:
            epochs = 0
            raise KeyboardInterrupt
        return 0.0

    for _ in range(30):
        try:
            pieces = find(seed=2, validate=stop, checkpoint=tmp_path / "a.pt")
        except KeyboardInterrupt:
            continue
        break
    assert same(pieces.model, whole.model)
    assert [e.loss for e in pieces.history] == [e.loss for e in whole.history]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"layers": "conv*"}, PruningError, "layers='conv\\*' matches no layer"),
        ({"training": FineTune(1, early_stop=EarlyStop())}, OptionError, "training.early_stop"),
        (
            {"training": FineTune(1, early_stop=EarlyStop(tolerance=0.1)), "validate": lambda _: 0},
            OptionError,
            "training.early_stop.tolerance is 0.1; allowed is None",
        ),
    ],
)
def test_options_that_dont_fit(options: dict[str, Any], error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        find(**options)
