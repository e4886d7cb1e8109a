"""Which algorithm and layout each layer of a model takes, decided for all of them at once.

Some kernels read and write the model's own layout, others channel blocks. Layer by layer, a model
would stay in whatever layout it begins with: the first sparse layer pays for conversions of
everything it reads, its successors wouldn't. A beam search over the layers in order finds the plan
whose kernels and conversions together take the least.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

# States that go on from one layer to the next: a value has two layouts, and few are alive at once.
_BEAM = 64

Blocks = dict[Any, frozenset[int]]


@dataclass(frozen=True)
class Option:
    """One way to compute a layer.

    Attributes
    ----------
    seconds : float
        Of its kernel.
    reads : tuple of (value, int)
        The channel block in which it needs each value that it reads.
    writes : int
        The channel block of its result.
    choice : object
        What the planner knows it by.
    """

    seconds: float
    reads: tuple[tuple[Any, int], ...]
    writes: int
    choice: Any


@dataclass(frozen=True)
class _State:
    """The cheapest way to arrive at these layouts of the values that are still needed."""

    seconds: float
    blocks: Blocks
    last: tuple[Any, ...] | None  # (choice, the same of the layer before)


def search(
    steps: Sequence[tuple[Any, Sequence[Option]]],
    results: Sequence[Any],
    conversion: Callable[[Any, int, frozenset[int]], float],
) -> list[Any]:
    """The choice of each layer in the cheapest plan.

    Parameters
    ----------
    steps : sequence of (value, options)
        For each layer in order its result, and the ways to compute it.
    results : sequence of value
        What must be in the model's own layout in the end.
    conversion : callable
        Seconds to bring a value into a block that it may not be at hand in, given those that it is.
    """
    needed_until: dict[Any, int] = {}
    for i, (_, options) in enumerate(steps):
        for option in options:
            needed_until.update((var, i) for var, _ in option.reads)
    made = {var: i for i, (var, _) in enumerate(steps)}
    # A result is brought into the model's own layout behind its last reader. Waiting for the end
    # would leave a state for each combination of results that nothing depends on any more.
    finished: dict[int, list[Any]] = {}
    for var in results:
        finished.setdefault(max(needed_until.get(var, -1), made.get(var, -1)), []).append(var)
    states = [_State(0.0, {}, None)]
    for i, (result, options) in enumerate(steps):
        found: dict[Any, _State] = {}
        for state in states:
            for option in options:
                new = _after(state, option, result, conversion)
                new = _ended(new, finished.get(i, ()), conversion)
                live = {v: b for v, b in new.blocks.items() if needed_until.get(v, -1) > i}
                new = _State(new.seconds, live, new.last)
                key = frozenset(live.items())
                if key not in found or new.seconds < found[key].seconds:
                    found[key] = new
        states = sorted(found.values(), key=lambda state: state.seconds)[:_BEAM]
    choices = []
    last = min(states, key=lambda state: state.seconds).last
    while last is not None:
        choices.append(last[0])
        last = last[1]
    return choices[::-1]


def _after(
    state: _State,
    option: Option,
    result: Any,
    conversion: Callable[[Any, int, frozenset[int]], float],
) -> _State:
    seconds, blocks = state.seconds + option.seconds, dict(state.blocks)
    for var, block in option.reads:
        # Inputs of the model, which no layer made, are in its own layout.
        at_hand = blocks.get(var, frozenset((0,)))
        seconds += conversion(var, block, at_hand)
        blocks[var] = at_hand | {block}
    blocks[result] = frozenset((option.writes,))
    return _State(seconds, blocks, (option.choice, state.last))


def _ended(
    state: _State,
    results: Sequence[Any],
    conversion: Callable[[Any, int, frozenset[int]], float],
) -> _State:
    """With results that nobody reads any more in the model's own layout."""
    plain = frozenset((0,))
    seconds = sum(conversion(var, 0, state.blocks.get(var, plain)) for var in results)
    return _State(state.seconds + seconds, state.blocks, state.last)
