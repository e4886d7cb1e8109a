"""Random numbers are the run's own, and go on where they were."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.training.networks import images, torch
from tvm_ext.training.randomness import isolated, random_state, set_random_state


def draw() -> tuple[float, float, float]:
    return torch.rand(1).item(), float(np.random.random()), random.random()


def test_a_seed_gives_the_same_numbers_and_leaves_those_outside() -> None:
    torch.manual_seed(3)
    np.random.seed(3)
    random.seed(3)
    outside = [draw(), draw()]
    torch.manual_seed(3)
    np.random.seed(3)
    random.seed(3)
    assert draw() == outside[0]
    with isolated(7):
        first = draw()
    with pytest.raises(KeyError), isolated(7):
        assert draw() == first
        raise KeyError
    assert draw() == outside[1]


@pytest.mark.parametrize("seed", [0, 2**32, 2**63 - 1])
def test_seeds_of_any_size(seed: int) -> None:
    with isolated(seed):
        assert len(draw()) == 3


@pytest.mark.parametrize("own", [False, True])
def test_a_state_gives_the_same_numbers_and_the_same_batches(own: bool) -> None:
    loader = images(generator=torch.Generator().manual_seed(1) if own else None)
    with isolated(1):
        next(iter(loader))
        state = random_state(loader)
        wanted = [y.tolist() for _, y in loader], draw()
        set_random_state(loader, state)
        assert ([y.tolist() for _, y in loader], draw()) == wanted


def test_generators_of_samplers_count_once() -> None:
    own = torch.Generator()
    sampler = torch.utils.data.RandomSampler(range(9), generator=own)
    assert len(random_state(torch.utils.data.DataLoader(range(9), sampler=sampler))["loader"]) == 1
    assert len(random_state(images(generator=own))["loader"]) == 1
    assert random_state([1, 2])["loader"] == []
