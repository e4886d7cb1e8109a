"""Random numbers of a training run: seeded, kept in checkpoints, and nobody else's."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch


@contextmanager
def isolated(seed: int) -> Iterator[None]:
    """Seed the global generators of PyTorch, NumPy and Python; put their states back at the end."""
    before = _global_state()
    torch.manual_seed(seed)
    np.random.seed(seed % 2**32)
    random.seed(seed)
    try:
        yield
    finally:
        _set_global_state(before)


def random_state(loader: Iterable[Any]) -> dict[str, Any]:
    """The states of the global generators, and of the loader's own."""
    return {**_global_state(), "loader": [g.get_state() for g in _generators(loader)]}


def set_random_state(loader: Iterable[Any], state: dict[str, Any]) -> None:
    """Go on with states from `random_state`."""
    _set_global_state(state)
    for generator, value in zip(_generators(loader), state["loader"], strict=True):
        generator.set_state(value)


def _generators(loader: Iterable[Any]) -> list[torch.Generator]:
    """The generators of a data loader and of its samplers, each once."""
    batches = getattr(loader, "batch_sampler", None)
    owners = (loader, getattr(loader, "sampler", None), batches, getattr(batches, "sampler", None))
    found = (getattr(owner, "generator", None) for owner in owners)
    return list({id(g): g for g in found if isinstance(g, torch.Generator)}.values())


def _global_state() -> dict[str, Any]:
    name, keys, *rest = np.random.get_state(legacy=True)
    return {
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all(),
        # Lists and numbers, since checkpoints hold no NumPy arrays.
        "numpy": (str(name), np.asarray(keys).tolist(), *rest),
        "python": random.getstate(),
    }


def _set_global_state(state: dict[str, Any]) -> None:
    torch.set_rng_state(state["torch"])
    torch.cuda.set_rng_state_all(state["cuda"])
    name, keys, *rest = state["numpy"]
    np.random.set_state((name, np.array(keys, "uint32"), *rest))
    random.setstate(state["python"])
