"""Whole runs: zeros that stay, resuming with the same bits, and modules of every kind."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.training.networks import convnet, cross_entropy, images, nn, normal, same, torch
from tvm_ext.errors import CheckpointError, OptionError
from tvm_ext.passes.pruning import BlockPrune, MagnitudePrune, PatternPrune
from tvm_ext.training import (
    ADMM,
    AttentionTransfer,
    Distillation,
    EarlyStop,
    FineTune,
    Freezing,
    accuracy,
    admm_prune,
    mean_loss,
)

SGD = partial(torch.optim.SGD, momentum=0.9, weight_decay=1e-2)
SHORT: dict[str, Any] = {"admm": ADMM(2), "fine_tune": FineTune(2), "progress": False}


@pytest.mark.parametrize("optimizer", [torch.optim.Adam, SGD])
@pytest.mark.parametrize(
    "scheme",
    [PatternPrune(connectivity=0.5), BlockPrune(0.25, (4, 6)), MagnitudePrune(0.2, "global")],
)
def test_the_zeros_are_those_that_the_scheme_chooses(scheme: Any, optimizer: Any) -> None:
    result = admm_prune(convnet(), images(), cross_entropy, scheme, optimizer=optimizer, **SHORT)
    weights = {n: result.model[int(n)].weight.detach().numpy() for n in ("3", "5")}
    assert set(result.masks) == set(weights)
    chosen = next(iter(result.schemes.values())).masks(weights)
    for name, array in weights.items():
        np.testing.assert_array_equal(array != 0, result.masks[name])
        np.testing.assert_array_equal(chosen[name], result.masks[name])
        assert result.densities[name] == result.masks[name].mean()
    assert all((result.model[i].weight != 0).all() for i in (0, 10))


def test_without_epochs_it_is_the_scheme_on_the_dense_model() -> None:
    model, scheme = convnet(), MagnitudePrune(0.3)
    result = admm_prune(
        model, images(), cross_entropy, scheme, admm=ADMM(0), fine_tune=FineTune(0), progress=False
    )
    for i in (3, 5):
        array = model[i].weight.detach().numpy()
        np.testing.assert_array_equal(result.model[i].weight.detach(), array * scheme.mask(array))
    assert result.history == ()
    assert not result.model.training


def test_the_same_seed_gives_the_same_bits_and_another_doesnt() -> None:
    def run(seed: int) -> Any:
        model = convnet(dropout=0.5)
        return admm_prune(model, images(), cross_entropy, MagnitudePrune(0.5), seed=seed, **SHORT)

    first, second, third = run(3), run(3), run(4)
    assert same(first.model, second.model)
    assert first.history == second.history
    assert not same(first.model, third.model)


def test_rounds_of_falling_density() -> None:
    result = admm_prune(
        convnet(), images(), cross_entropy, MagnitudePrune(0.5), densities=(0.5, 0.25), **SHORT
    )
    assert result.densities == {"3": 0.25, "5": 0.25}
    assert [(e.stage, e.number) for e in result.history] == [
        ("admm", 0), ("admm", 0), ("fine_tune", 0), ("fine_tune", 0),
        ("admm", 1), ("admm", 1), ("fine_tune", 1), ("fine_tune", 1),
    ]  # fmt: skip


class Stop(Exception):
    pass


class Interrupted:
    """Stops a run after its first epoch: in the second, or after it but before it is kept."""

    def __init__(self, kind: str) -> None:
        self.kind, self.validations, self.batches = kind, 0, 0

    def validate(self, model: Any) -> float:
        # The first call is of the dense model.
        self.validations += 1
        if self.validations > 2:
            raise Stop
        return mean_loss(model, images(8), cross_entropy)

    def loss(self, outputs: Any, targets: Any) -> Any:
        self.batches += self.validations == 2
        if self.kind == "epoch" and self.batches == 2:
            raise Stop
        return cross_entropy(outputs, targets)


def resumed(path: Path, run: Any, kind: str) -> tuple[Any, int]:
    """Start a run until it ends; how often that was."""
    for count in range(1, 100):
        interrupted = Interrupted(kind)
        try:
            return run(path, interrupted.validate, interrupted.loss), count
        except Stop:
            torch.manual_seed(99)
    raise AssertionError("it never ended")


@pytest.mark.parametrize("kind", ["epoch", "validation"])
@pytest.mark.parametrize("own_generator", [False, True])
def test_resuming_gives_the_same_bits(tmp_path: Path, own_generator: bool, kind: str) -> None:
    def run(path: Path | None, validate: Any, loss: Any = cross_entropy) -> Any:
        generator = torch.Generator().manual_seed(8) if own_generator else None
        return admm_prune(
            convnet(dropout=0.5), images(generator=generator), loss, PatternPrune(connectivity=0.5),
            densities=(0.4, 0.2), admm=ADMM(3, rho=(0.1, 1.0)),
            fine_tune=FineTune(4, freezing=Freezing(0.3), early_stop=EarlyStop(3)),
            distillation=Distillation(), attention=AttentionTransfer(("4",)),
            validate=validate, checkpoint=path, seed=5, progress=False,
        )  # fmt: skip

    whole = run(None, lambda model: mean_loss(model, images(8), cross_entropy))
    pieces, count = resumed(tmp_path / "run.pt", run, kind)
    assert count == len(whole.history)
    assert pieces.history == whole.history
    assert same(pieces.model, whole.model)
    for name, mask in whole.masks.items():
        np.testing.assert_array_equal(pieces.masks[name], mask)
    # It did freeze and train in both stages, or this would have tested little.
    assert any(epoch.metrics.frozen for epoch in whole.history)
    assert {epoch.stage for epoch in whole.history} == {"admm", "fine_tune"}


def test_a_finished_run_gives_its_result_again(tmp_path: Path) -> None:
    def run(loss: Any) -> Any:
        return admm_prune(
            convnet(), images(), loss, MagnitudePrune(0.5), checkpoint=tmp_path / "a.pt", **SHORT
        )

    def fail(*_: Any) -> Any:
        raise Stop

    first, again = run(cross_entropy), run(fail)
    assert same(first.model, again.model)
    assert first.history == again.history
    assert not again.model.training


def test_a_checkpoint_of_other_options_is_refused(tmp_path: Path) -> None:
    run = partial(admm_prune, convnet(), images(), cross_entropy, checkpoint=tmp_path / "a.pt")
    run(MagnitudePrune(0.5), **SHORT)
    with pytest.raises(CheckpointError, match="another schemes: MagnitudePrune"):
        run(MagnitudePrune(0.4), **SHORT)
    with pytest.raises(CheckpointError, match="another options"):
        run(MagnitudePrune(0.5), **{**SHORT, "admm": ADMM(3)})


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(6, 5, batch_first=True)
        self.gru = nn.GRU(5, 4, batch_first=True)
        self.head = nn.Linear(4, 3)

    def forward(self, x: Any) -> Any:
        return self.head(self.gru(self.lstm(x)[0])[0][:, -1])


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(6, 2, 8, dropout=0.0, batch_first=True)
        self.head = nn.Linear(6, 3)

    def forward(self, x: Any) -> Any:
        return self.head(self.layer(x).mean(1))


@pytest.mark.parametrize(
    ("module", "shape", "pruned"),
    [
        (Recurrent, (4, 6), {"lstm.weight_ih_l0", "lstm.weight_hh_l0", "gru.weight_ih_l0",
                             "gru.weight_hh_l0"}),
        (Attention, (4, 6), {"layer.self_attn.in_proj_weight", "layer.self_attn.out_proj",
                             "layer.linear1", "layer.linear2"}),
        (lambda: nn.Sequential(nn.Conv1d(2, 4, 3), nn.Conv1d(4, 4, 3), nn.Flatten(),
                               nn.Linear(16, 3)), (2, 8), {"1"}),
        (lambda: nn.Sequential(nn.Conv3d(1, 4, 2), nn.Conv3d(4, 4, 2), nn.Flatten(),
                               nn.Linear(4, 3)), (1, 3, 3, 3), {"1"}),
    ],
)  # fmt: skip
def test_modules_of_every_kind(module: Any, shape: tuple[int, ...], pruned: set[str]) -> None:
    torch.manual_seed(0)
    batches = [(normal(9, *shape), torch.arange(9) % 3)]
    scheme = BlockPrune(0.5, (2, 4))
    result = admm_prune(module(), batches, cross_entropy, scheme, **SHORT)
    assert set(result.masks) == pruned
    parameters = dict(result.model.named_parameters())
    for name, mask in result.masks.items():
        parameter = parameters.get(name, parameters.get(f"{name}.weight"))
        assert 0 < mask.mean() < 1
        np.testing.assert_array_equal(parameter.detach().numpy() != 0, mask)


def test_training_recovers_what_pruning_alone_loses() -> None:
    loader = images(60, 20)
    dense = admm_prune(
        convnet(), loader, cross_entropy, MagnitudePrune(1.0), admm=ADMM(0),
        fine_tune=FineTune(25, learning_rate=1e-2), progress=False,
    ).model  # fmt: skip
    scheme = BlockPrune(0.25, (8, 2))
    alone, trained = (
        admm_prune(
            dense, loader, cross_entropy, scheme, admm=ADMM(epochs, learning_rate=1e-2),
            fine_tune=FineTune(epochs, learning_rate=1e-2), progress=False,
        ).model
        for epochs in (0, 10)
    )  # fmt: skip
    assert accuracy(dense, loader) > 0.95
    assert accuracy(alone, loader) < 0.9
    assert accuracy(trained, loader) > 0.95


@pytest.mark.parametrize("teacher", [False, True])
def test_the_teacher_is_the_dense_model_or_one_that_is_given(teacher: bool) -> None:
    # With alpha = 1 and no step that counts, the loss is the distance to the teacher.
    other = convnet(1) if teacher else None
    result = admm_prune(
        convnet().eval(), images(8), cross_entropy, MagnitudePrune(1.0), teacher=other,
        distillation=Distillation(1.0, 1.0), admm=ADMM(0),
        fine_tune=FineTune(1, learning_rate=1e-12), optimizer=torch.optim.SGD, progress=False,
    )  # fmt: skip
    x = next(iter(images(8)))[0]
    student, wanted = convnet().train()(x), (other or convnet()).eval()(x)
    p, q = wanted.softmax(1), student.softmax(1)
    assert result.history[0].loss == pytest.approx(
        (p * (p / q).log()).sum(1).mean().item(), rel=2e-3
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"teacher": convnet()}, "teacher is given, but neither distillation nor attention"),
        ({"densities": ()}, "densities is empty"),
        ({"densities": (0.5, 2.0)}, r"density=2.0 has to be a number in \(0, 1\]"),
    ],
)
def test_options_that_dont_fit(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        admm_prune(convnet(), images(), cross_entropy, MagnitudePrune(0.5), **options)
