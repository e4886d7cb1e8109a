"""A layer of a plan under another schedule."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from tvm_ext.plan import LayerPlan
from tvm_ext.schedules.tuned import Tuned


def tuned_entry(
    entry: LayerPlan, params: Mapping[str, str], seconds: float, source: str
) -> LayerPlan:
    """A layer's entry with TVM's implementation under a trace, in the model's own layouts.

    Parameters
    ----------
    entry : LayerPlan
    params : dict
        Of the algorithm ``tuned``: `record` and `trace`.
    seconds : float
        What the layer is expected to take.
    source : str
        As of `LayerPlan`.
    """
    # The names for these ranks: NCHW for NCHW16c.
    layout = [re.sub(r"\d+c$", "", name) for name in entry.layout]
    return replace(
        entry, algorithm=Tuned.name, params=dict(params), layout=layout, storage="dense",
        source=source, estimate_us=seconds * 1e6, tolerance=1e-4, rejected={},
    )  # fmt: skip
