"""Layers that an accelerator computes, as the partitioner left them in the graph."""

from __future__ import annotations

from typing import Any

from tvm_ext.codegen.byoc.subgraph import RUN, Summary, summary
from tvm_ext.passes import dataflow as df


def offloaded(pairs: list[tuple[Any, Any]]) -> Summary | None:
    """What a group computes that is one call of an accelerator; None for any other group."""
    if len(pairs) != 1 or df.op_name(pairs[0][1]) != "relax.call_dps_packed":
        return None
    callee, arguments = pairs[0][1].args[:2]
    document = df.value_of(arguments.fields[0]) if hasattr(arguments, "fields") else None
    if str(callee.global_symbol) != RUN or document is None:
        return None
    return summary(document.tobytes().decode())
