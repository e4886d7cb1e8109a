"""How long a stream takes, by the machine's timing model: what tilings are chosen by."""

from __future__ import annotations

from collections.abc import Sequence

from tvm_ext.codegen.isa import Unit
from tvm_ext.codegen.lowering.stream import Step


def stream_cycles(steps: Sequence[Step], edges: Sequence[tuple[int, ...]]) -> int:
    """Cycles until the last unit stops.

    Units start each instruction when it is free and what it waits for has ended. Load and store
    share the bus, which goes to the unit that started first.
    """
    queues: dict[Unit, list[int]] = {unit: [] for unit in Unit}
    for index, step in enumerate(steps):
        queues[step.unit].append(index)
    ends: list[int] = [-1] * len(steps)
    place, free, bus_free = dict.fromkeys(Unit, 0), dict.fromkeys(Unit, 0), 0
    starts: dict[Unit, int] = {}
    for _ in range(len(steps)):
        for unit, queue in queues.items():
            if unit in starts or place[unit] == len(queue):
                continue
            waits = [ends[other] for other in edges[queue[place[unit]]]]
            if min(waits, default=0) >= 0:
                starts[unit] = max(free[unit], *waits, 0)
        unit = min(starts, key=lambda each: (starts[each], each))
        index = queues[unit][place[unit]]
        step = steps[index]
        end = starts.pop(unit) + step.cycles
        if step.bus_cycles:
            end += max(0, bus_free - (end - step.bus_cycles))
            bus_free = end
        ends[index] = free[unit] = end
        place[unit] += 1
    return max(free.values())
