"""What every model family of the zoo shares: the recipe, the packages' files, test images."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import numpy as np
import onnx

Inputs = dict[str, np.ndarray]


class MissingPackageError(RuntimeError):
    """A package that ships a model's weights is not installed."""


@dataclass(frozen=True)
class Recipe:
    """How one model is made.

    Attributes
    ----------
    name : str
        The model's name in the zoo.
    summary : str
        One line: the network and where its weights come from.
    build : Callable[[], onnx.ModelProto]
        Makes the model; deterministic.
    inputs : Callable[[numpy.random.Generator], dict[str, numpy.ndarray]]
        Makes one set of inputs, by input name.
    revision : int
        Part of the cached file's name: raise it when `build` changes, so that old files go unused.
    """

    name: str
    summary: str
    build: Callable[[], onnx.ModelProto]
    inputs: Callable[[np.random.Generator], Inputs]
    revision: int = 1


def package_file(distribution: str, suffix: str, install: str) -> Path:
    """Find a data file of an installed distribution without importing it.

    Parameters
    ----------
    distribution : str
        The name on PyPI.
    suffix : str
        How the file's path inside the distribution ends.
    install : str
        The command that installs it, for the error.

    Returns
    -------
    pathlib.Path
        The file on disk.

    Raises
    ------
    MissingPackageError
        If the distribution is not installed or holds no such file.
    """
    try:
        files = metadata.files(distribution) or []
    except metadata.PackageNotFoundError as error:
        raise MissingPackageError(
            f"the package {distribution!r} is not installed; run: {install}"
        ) from error
    for file in files:
        if file.as_posix().endswith(suffix):
            return Path(str(file.locate()))
    raise MissingPackageError(
        f"the package {distribution!r} has no file ending in {suffix!r}; reinstall it: {install}"
    )


def random_image(rng: np.random.Generator, size: int = 224) -> np.ndarray:
    """Make a normalised random image with structure at three scales.

    White noise alone averages out inside a convolutional network, so that every input would give
    nearly the same output; blocks of 32 and of 8 pixels survive the pooling.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of randomness.
    size : int
        Height and width in pixels, a multiple of 32.

    Returns
    -------
    numpy.ndarray
        float32, shape (1, 3, size, size), mean about 0 and standard deviation about 1.
    """
    image = rng.normal(size=(3, size, size))
    for block in (8, 32):
        coarse = rng.normal(size=(3, size // block, size // block))
        image += coarse.repeat(block, axis=1).repeat(block, axis=2)
    return (image[np.newaxis] / np.sqrt(3)).astype(np.float32)


def random_clip(rng: np.random.Generator, frames: int = 16, size: int = 112) -> np.ndarray:
    """Make a film of a camera that pans over a random image, a pixel a frame.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of randomness.
    frames, size : int
        The number of frames, and their height and width; `frames` + `size` is a multiple of 32.

    Returns
    -------
    numpy.ndarray
        float32, shape (1, 3, frames, size, size), mean about 0 and standard deviation about 1.
    """
    scene = random_image(rng, frames + size)
    shown = [scene[:, :, t : t + size, t : t + size] for t in range(frames)]
    return np.stack(shown, axis=2)
