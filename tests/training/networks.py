"""Small modules and data for the tests of training."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
nn = torch.nn
cross_entropy = nn.functional.cross_entropy


def normal(*shape: int, seed: int = 0) -> Any:
    """Seeded normal numbers."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def convnet(seed: int = 0, dropout: float = 0.0) -> Any:
    """Three 3x3 convolutions on 6x6 images, a batch norm, and a classifier of 3 classes."""
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(),
        nn.Conv2d(4, 8, 3, padding=1), nn.ReLU(),
        nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Dropout(dropout), nn.Linear(32, 3),
    )  # fmt: skip


def images(count: int = 24, batch: int = 8, generator: Any = None) -> Any:
    """Shuffled batches of random images, whose class is told by their mean."""
    x = normal(count, 1, 6, 6) + torch.arange(count).remainder(3).reshape(-1, 1, 1, 1)
    data = torch.utils.data.TensorDataset(x, torch.arange(count).remainder(3))
    return torch.utils.data.DataLoader(data, batch, shuffle=True, generator=generator)


def same(left: Any, right: Any) -> bool:
    """Whether two modules have the same bits in all parameters and buffers."""
    a, b = left.state_dict(), right.state_dict()
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)
