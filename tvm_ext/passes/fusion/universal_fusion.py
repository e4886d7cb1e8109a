"""Cut `main` into groups of operators that are one kernel each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tvm

from tvm_ext.passes.fusion.decisions import Profile, Refusal
from tvm_ext.passes.fusion.group_functions import outline
from tvm_ext.passes.fusion.growth import Growth
from tvm_ext.passes.fusion.kernel_form import kernel_form
from tvm_ext.passes.fusion.operators import Operator, operators


def saves_traffic(one: Sequence[Operator], parts: Sequence[Sequence[Operator]]) -> bool:
    """The answer to an open question where nothing is known of the machine.

    An operator that only moves elements saves its way through memory. A pool costs the
    convolution's edges again, and steps before a convolution are computed by each of its tasks, so
    that they depend on sizes and caches.
    """
    form = kernel_form([(op.var, op.expr) for op in one])
    return form.pool is None and form.prologue is None


@tvm.transform.module_pass(opt_level=0, name="UniversalFusion")
class UniversalFusion:
    """Put every operator of `main` into exactly one group function, by its mapping type.

    Parameters
    ----------
    profile : callable, optional
        Decides where the table of mapping types leaves it open; see `decisions.Profile`. By
        default operators that move elements are fused, pools and steps before convolutions are not.

    Attributes
    ----------
    refusals : list of Refusal
        Of the last module: pairs of operators that were not fused, with the reason.

    Notes
    -----
    Operators of tensors whose shapes aren't known stay groups of their own, as do tuples.
    """

    def __init__(self, profile: Profile = saves_traffic) -> None:
        self.profile = profile
        self.refusals: list[Refusal] = []

    def transform_module(self, mod: tvm.IRModule, _: Any) -> tvm.IRModule:
        """Group `main`; see `group_functions.outline` for the form of the result."""
        growth = Growth(operators(mod["main"]), self.profile)
        groups = growth.groups()
        self.refusals = growth.refusals
        return outline(mod, [[(op.var, op.expr) for op in group] for group in groups])
