"""Pruning with training in the loop: ADMM towards a scheme, then masked fine-tuning."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tvm_ext.errors import OptionError
from tvm_ext.training.admm import AdmmStage
from tvm_ext.training.assignment import Assignment, Schemes
from tvm_ext.training.checkpoint import open_checkpoint
from tvm_ext.training.masked_stage import FineTuneStage
from tvm_ext.training.masks import Masks
from tvm_ext.training.objective import Loss, Objective
from tvm_ext.training.options import ADMM, AttentionTransfer, Distillation, FineTune
from tvm_ext.training.result import TrainingResult
from tvm_ext.training.run import MakeOptimizer, Run, Validate, check_early_stop, check_seed
from tvm_ext.training.stage import Stage
from tvm_ext.training.weights import prunable_weights


def admm_prune(
    model: nn.Module,
    loader: Iterable[Any],
    loss: Loss,
    schemes: Schemes,
    *,
    densities: Sequence[float] | None = None,
    admm: ADMM = ADMM(),  # noqa: B008
    fine_tune: FineTune = FineTune(),  # noqa: B008
    optimizer: MakeOptimizer = torch.optim.Adam,
    distillation: Distillation | None = None,
    attention: AttentionTransfer | None = None,
    teacher: nn.Module | None = None,
    validate: Validate | None = None,
    checkpoint: str | Path | None = None,
    seed: int = 0,
    progress: bool = True,
) -> TrainingResult:
    """Prune a trained model so that it keeps its accuracy.

    Each round trains with ADMM towards what the schemes allow, sets the other weights to zero, and
    trains those that are left. What is zero stays zero in the next round's ADMM.

    Parameters
    ----------
    model : torch.nn.Module
        Trained, dense. It isn't changed.
    loader : iterable
        A `DataLoader`, or another iterable that can be gone through again and again, of pairs
        (inputs, targets). Inputs are a tensor, a tuple or list (the arguments of ``forward``), or a
        dictionary (its named arguments). They are moved to where the model is.
    loss : callable
        (outputs, targets) -> a scalar.
    schemes : Scheme or Mapping of str to (Scheme or None)
        One scheme for all layers but the first convolution and a dense layer at the end; or
        patterns (as of `fnmatch`) of layers' names -> their scheme, of which the first that matches
        counts. A layer is named as its parameter, without ``.weight``: ``features.0``,
        ``lstm.weight_ih_l0``. None, and no pattern at all, leave it dense.
    densities : sequence of float, optional
        A round for each, with the schemes set to keep this share of the weights of each layer. By
        default one round, with the schemes as they are.
    admm : ADMM
    fine_tune : FineTune
    optimizer : callable
        (list of parameters, lr=learning rate) -> a `torch.optim.Optimizer`:
        ``functools.partial(torch.optim.SGD, momentum=0.9)``.
    distillation : Distillation, optional
    attention : AttentionTransfer, optional
    teacher : torch.nn.Module, optional
        Of the last two; by default the dense model. It is copied.
    validate : callable, optional
        The model, in evaluation mode -> a loss, the lower the better. Called after each epoch.
    checkpoint : str or Path, optional
        A file that keeps the state after each epoch. If it is there, the run goes on from it, and
        on a CPU ends with the same bits as if it had never been interrupted; this needs the same
        arguments, and a data set whose only random numbers are PyTorch's, NumPy's and Python's
        global ones. The file of a finished run gives its result again.
    seed : int
        Of those random numbers, during the run; what they were before is put back. A generator of
        the loader's own isn't seeded.
    progress : bool
        Whether to show a bar, if stderr is a terminal.

    Returns
    -------
    TrainingResult

    Raises
    ------
    OptionError
        An option doesn't fit the model, the schemes or the other options.
    PruningError
        A pattern matches no layer, nothing is left to prune, or a weight is NaN or infinite.
    TrainingError
        The loss isn't finite, or the loader gives something else.
    CheckpointError
        The checkpoint is truncated, or of another run.
    ArtifactError
        The checkpoint can't be written.

    Notes
    -----
    ADMM: Zhang et al. 2018, "A systematic DNN weight pruning framework using alternating direction
    method of multipliers". Rounds of falling density: Ye et al. 2019, "Progressive weight pruning
    of deep neural networks using ADMM".
    """
    check_seed(seed)
    check_early_stop("fine_tune", fine_tune, validate)
    if teacher is not None and distillation is None and attention is None:
        raise OptionError("teacher is given, but neither distillation nor attention")
    if densities is not None and not len(densities):
        raise OptionError("densities is empty; allowed are one or more shares in (0, 1]")
    student, teacher = deepcopy(model), deepcopy(model if teacher is None else teacher).eval()
    weights = prunable_weights(student)
    assignments = [Assignment(weights, schemes, density) for density in densities or (None,)]
    masks = Masks(weights)
    run = Run(
        model=student, masks=masks, loader=loader,
        objective=Objective(student, loss, teacher, distillation, attention),
        optimizer=optimizer, validate=validate, seed=seed, progress=progress,
        checkpoint=open_checkpoint(
            checkpoint, model=model, teacher=teacher, optimizer=optimizer, seed=seed,
            schemes=schemes, densities=densities,
            options=(admm, fine_tune, distillation, attention),
        ),
    )  # fmt: skip
    dense = run.dense_validation()
    stages: list[Stage] = []
    for number, assignment in enumerate(assignments):
        stages.append(AdmmStage(number, admm, assignment))
        stages.append(FineTuneStage(assignment, number, fine_tune, student, masks, dense))
    history = run.execute(stages)
    return TrainingResult(
        model=student, masks=masks.arrays(), schemes=assignments[-1].schemes,
        skipped=assignments[-1].skipped, history=history, dense_validation=dense,
    )  # fmt: skip
