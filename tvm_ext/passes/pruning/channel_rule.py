"""What is known of an operator: where its channels go, and what it is when some are gone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm import relax

from tvm_ext.passes.pruning.channel_shrink import Shrink
from tvm_ext.passes.pruning.channel_step import Result, Step


@dataclass(frozen=True)
class Rule:
    """An operator that is understood.

    Attributes
    ----------
    follow : callable
        Gives the channels of the result; ties and fixes those of the arguments.
    shrink : callable
        Gets the step and its call on what became of the arguments, gives what is to be computed
        now. By default it's the same operator, and constants are cut.
    """

    follow: Callable[[Step], Result]
    shrink: Callable[[Shrink, Step, relax.Call], Any] = Shrink.call
