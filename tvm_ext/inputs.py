"""The inputs of a compiled model: as callers give them, and random ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tvm_ext.errors import CallError
from tvm_ext.program import Program

Inputs = Mapping[str, Any] | Sequence[Any] | np.ndarray


def checked(program: Program, inputs: Inputs) -> dict[str, np.ndarray]:
    """The arrays by input name.

    Parameters
    ----------
    program : Program
        Its inputs say what is allowed.
    inputs : dict, list or ndarray
        Arrays by input name, in the order of the program's inputs, or the only one.

    Raises
    ------
    CallError
        An input is missing, unknown, or has another shape or dtype.
    """
    names = tuple(program.inputs)
    if isinstance(inputs, np.ndarray):
        inputs = [inputs]
    if isinstance(inputs, Mapping):
        if unknown := [n for n in inputs if n not in names]:
            raise CallError(f"unknown input {unknown[0]!r}; the inputs are {list(names)}")
        if missing := [n for n in names if n not in inputs]:
            raise CallError(f"input {missing[0]!r} is missing; the inputs are {list(names)}")
        given = dict(inputs)
    else:
        if len(inputs) != len(names):
            raise CallError(f"{len(inputs)} inputs given; the inputs are {list(names)}")
        given = dict(zip(names, inputs, strict=True))
    arrays = {}
    for name in names:
        buffer = program.buffers[program.inputs[name]]
        array = np.asarray(given[name])
        if array.shape != tuple(buffer.shape):
            raise CallError(f"input {name!r} has shape {array.shape}; allowed: {buffer.shape}")
        # By dtypes, as their names take microseconds.
        if array.dtype != np.dtype(buffer.dtype):
            raise CallError(f"input {name!r} has dtype {array.dtype}; allowed: {buffer.dtype}")
        arrays[name] = array
    return arrays


def random_inputs(program: Program, seed: int) -> dict[str, np.ndarray]:
    """Standard normal floats, zeros and ones for integers, of the right shapes."""
    rng = np.random.default_rng(seed)
    arrays = {}
    for name, number in program.inputs.items():
        buffer = program.buffers[number]
        if buffer.dtype.startswith("float"):
            arrays[name] = rng.standard_normal(buffer.shape).astype(buffer.dtype)
        else:
            arrays[name] = rng.integers(0, 2, buffer.shape).astype(buffer.dtype)
    return arrays
