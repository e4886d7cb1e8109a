"""Time grouped modules against each other."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import tvm

from tvm_ext import planner
from tvm_ext.assemble import assemble
from tvm_ext.layers import layers
from tvm_ext.target import CpuTarget

_ROUNDS = 7
_ROUND_SECONDS = 0.01


def measure_layers(mods: Sequence[tvm.IRModule], target: CpuTarget) -> list[float]:
    """Seconds that each of some grouped modules takes, on random inputs.

    Parameters
    ----------
    mods : sequence of IRModule
        Each with a single output.
    target : CpuTarget
        Of this machine.

    Returns
    -------
    list of float
        Medians over rounds in which the modules take turns.
    """
    executables = []
    for mod in mods:
        found = layers(mod)
        exe = assemble(mod, found, planner.choose(found, target), target, ["output"])
        exe.set_inputs(exe.random_inputs())
        exe.run()
        executables.append(exe)
    times: list[list[float]] = [[] for _ in mods]
    for _ in range(_ROUNDS):
        for exe, own in zip(executables, times, strict=True):
            start, runs = time.perf_counter(), 0
            while time.perf_counter() - start < _ROUND_SECONDS:
                exe.run()
                runs += 1
            own.append((time.perf_counter() - start) / runs)
    return [float(np.median(own)) for own in times]
