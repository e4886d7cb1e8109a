"""Every combination of some hardware options, compiled and simulated."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tvm_ext import threads
from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.errors import LoweringError
from tvm_ext.codegen.network import Network
from tvm_ext.codegen.sweep.grid import grid
from tvm_ext.codegen.sweep.processes import Task, run_in_processes
from tvm_ext.codegen.sweep.progress import Tell, sweep_progress
from tvm_ext.codegen.sweep.result import Sweep
from tvm_ext.codegen.sweep.row import Failure, Point, run_point
from tvm_ext.errors import OptionError

_TIMEOUT_S = 600.0
Values = Any


def sweep(
    model: Any,
    *,
    pe: Values = None,
    sram: Values = None,
    parallel: Values = None,
    depthwise: Values = None,
    mapping: str | Iterable[str] = "auto",
    base: Accelerator | None = None,
    processes: int | None = None,
    timeout_s: float = _TIMEOUT_S,
    progress: bool | Tell = True,
    **options: Values,
) -> Sweep:
    """Cycles, bytes and energy of a model on every combination of hardware options.

    Each point is compiled and simulated without computing values. A point that can't be compiled is
    a `Failure` of the result, not an error.

    Parameters
    ----------
    model : Network, sequence of Network, or what `tvm_ext.load_model` takes
        Networks run one after the other. Any other model has to be quantised; what the accelerator
        takes of it is found for each point.
    pe : int or sequence of int, optional
        Processing elements.
    sram : int, str or sequence of them, optional
        Bytes, or sizes such as ``"512KiB"``.
    parallel : str or sequence of str, optional
        ``"output"``, ``"input"``.
    depthwise : str or sequence of str, optional
        ``"hardware"``, ``"software"``, ``"none"``.
    mapping : str or sequence of str
        ``"auto"``, ``"baseline"``: of `compile_network`.
    base : Accelerator, optional
        Has the values of options that aren't given; by default those of ``Accelerator()``.
    processes : int, optional
        Points at a time; by default as many as `tvm_ext` uses threads. 1: in this process.
    timeout_s : float
        Seconds after which a point in a process of its own becomes a failure.
    progress : bool or callable
        A bar on stderr where that is a terminal; or a function that is told the number of points
        done, that of all, and the label of the last one.
    **options
        Values of other options of `Accelerator`, such as ``dma_bytes_per_cycle=[8, 16]``.

    Returns
    -------
    Sweep
        The points in the grid's order: the last option changes fastest.

    Raises
    ------
    OptionError
        An option is unknown, has no values, or isn't allowed.
    AcceleratorError
        A combination of options is no accelerator.
    QuantizationError
        The model is float.
    ModelError, InputShapeError, UnsupportedOperatorsError
        It can't be loaded.
    """
    named = {"pes": pe, "sram_bytes": sram, "parallel": parallel, "depthwise": depthwise}
    if twice := named.keys() & options.keys():
        raise OptionError(f"sweep option {min(twice)!r}; allowed: pe, sram, parallel, depthwise")
    given = {name: values for name, values in named.items() if values is not None}
    hardware = grid(base or Accelerator(), {**given, **options}, mapping)
    workers = threads.default_threads() if processes is None else processes
    if workers < 1:
        raise OptionError(f"processes={workers}; allowed: 1 or more")
    points: dict[int, Point] = {}
    tasks: dict[int, Task] = {}
    for number, found in enumerate(_tasks(model, hardware)):
        if isinstance(found, Failure):
            points[number] = found
        else:
            tasks[number] = found
    with sweep_progress(progress) as tell:
        numbers, total = list(tasks), len(hardware)
        tell(len(points), total, "")
        for place, point in _ended(list(tasks.values()), min(workers, len(tasks)), timeout_s):
            points[numbers[place]] = point
            tell(len(points), total, point.label)
    return Sweep(tuple(points[number] for number in range(total)))


def _ended(tasks: Sequence[Task], workers: int, timeout_s: float) -> Iterable[tuple[int, Point]]:
    if workers <= 1:
        return ((number, run_point(*task)) for number, task in enumerate(tasks))
    return run_in_processes(tasks, workers, timeout_s)


def _tasks(model: Any, hardware: Sequence[tuple[Accelerator, str]]) -> list[Task | Failure]:
    """What to run for each point; a failure where the accelerator takes nothing of the model."""
    networks = [model] if isinstance(model, Network) else model
    if isinstance(networks, list | tuple) and all(isinstance(n, Network) for n in networks):
        if not networks:
            raise OptionError("the model has no networks; allowed: one or more")
        given = tuple((network, 1) for network in networks)
        return [(given, accelerator, mapping) for accelerator, mapping in hardware]
    return _model_tasks(model, hardware)


def _model_tasks(model: Any, hardware: Sequence[tuple[Accelerator, str]]) -> list[Task | Failure]:
    # Here, since loading and cutting models needs parts of this package that need errors of
    # codegen; networks need none of them.
    from tvm_ext.codegen.byoc import limits
    from tvm_ext.codegen.quantized_partition import quantized_partition
    from tvm_ext.frontend import load_model

    mod = load_model(model)
    deciding = sorted({choice.option for choice in limits.CHOICES})
    known: dict[tuple[Any, ...], tuple[tuple[Network, int], ...] | str] = {}
    tasks: list[Task | Failure] = []
    for accelerator, mapping in hardware:
        key = tuple(getattr(accelerator, name) for name in deciding)
        if key not in known:
            try:
                found = quantized_partition(mod, accelerator)
                known[key] = tuple((part.network, part.batch) for part in found.subgraphs)
            except LoweringError as error:
                known[key] = str(error)
        networks = known[key]
        if isinstance(networks, str):
            tasks.append(Failure(accelerator, mapping, LoweringError.__name__, networks))
        else:
            tasks.append((networks, accelerator, mapping))
    return tasks
