"""How much of something adds up along the steps that feed one another."""

from __future__ import annotations

from collections.abc import Callable

from tvm_ext.schedules.epilogue import Epilogue


def deepest(epilogue: Epilogue, weight: Callable[[int], int]) -> int:
    """The largest sum of weights over steps that a value goes through.

    Parameters
    ----------
    epilogue : Epilogue
    weight : callable
        Of the step with a number.
    """
    depths = [0] * epilogue.results
    for number, step in enumerate(epilogue.steps):
        below = max((depths[x] for kind, x in step.args if kind == "value"), default=0)
        depths.append(below + weight(number))
    return max(depths, default=0)
