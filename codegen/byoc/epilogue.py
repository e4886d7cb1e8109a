"""What stands between an operator and its quantisation: clamps, then a per-channel affine map."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tvm_ext.codegen.byoc.graph import Graph, Quantized, Refused
from tvm_ext.codegen.network_layers import FULL_RANGE, Pair
from tvm_ext.passes import dataflow as df


@dataclass
class Epilogue:
    """An operator's call and what follows it.

    Attributes
    ----------
    anchor : Call or None
        What the patterns look at; None where a parameter or constant is quantised.
    low, high : float
        Real limits of the result, infinite where there are none.
    steps : list of (str, Expr)
        Between the anchor and the clamp, in the order of execution: an operator's short name and
        its constant operand.
    operators : list of str
    inside : list of Var
        Values that nothing else reads, the anchor's own included.
    """

    anchor: Any
    low: float = -np.inf
    high: float = np.inf
    steps: list[tuple[str, Any]] = field(default_factory=list)
    operators: list[str] = field(default_factory=list)
    inside: list[Any] = field(default_factory=list)

    def clamp(self, y: Quantized) -> Pair:
        """The limits as int8 values of the result: quantising is monotonic."""
        assert y.scale is not None
        ends = []
        for end, value in zip((self.low, self.high), FULL_RANGE, strict=True):
            if np.isfinite(end):
                steps = np.rint(np.float32(end) / np.float32(y.scale))
                value = int(np.clip(float(steps) + y.zero_point, *FULL_RANGE))
            ends.append(value)
        return ends[0], ends[1]


def epilogue_of(graph: Graph, quantize: Any) -> Epilogue:
    """Walk back from a quantisation to the operator that it belongs to.

    Raises
    ------
    Refused
        A value on the way is read by others, too.
    """
    found = Epilogue(None)
    expr = quantize.args[0]
    while True:
        call = graph.value(expr)
        name = df.op_name(call).removeprefix("relax.")
        if not name:
            # A parameter or constant: nothing computes it.
            return found
        if name != "dequantize":
            _only_reader(graph, expr)
            found.inside.append(expr)
            found.operators.insert(0, name)
        if (clamp := _clamp(graph, name, call)) is not None and not found.steps:
            inner, expr = clamp
            # The limits found so far are applied to the ones that come before them.
            found.low, found.high = (min(max(x, found.low), found.high) for x in inner)
        elif (step := _step(graph, name, call)) is not None:
            found.steps.insert(0, step[0])
            expr = step[1]
        else:
            found.anchor = call
            return found


def _only_reader(graph: Graph, expr: Any) -> None:
    if not graph.read_once(expr):
        others = [r for r in graph.readers(expr) if r is not None]
        reader = f"{len(others)} operators" if len(others) > 1 else "the model's result"
        raise Refused(f"its real value {expr.name} is read by {reader}; allowed: quantising alone")


def _clamp(graph: Graph, name: str, call: Any) -> tuple[tuple[float, float], Any] | None:
    """Limits and argument of an operator that only clamps."""
    if name == "nn.relu":
        return (0.0, np.inf), call.args[0]
    if name == "nn.relu6":
        return (0.0, 6.0), call.args[0]
    if name == "clip":
        low, high = (float(getattr(a.value, "value", a.value)) for a in call.args[1:3])
        return (low, high), call.args[0]
    if name in ("maximum", "minimum"):
        for x, other in (call.args, reversed(call.args)):
            bound = graph.real(other)
            if bound is not None and bound.size == 1:
                value = float(bound.reshape(()))
                return ((value, np.inf) if name == "maximum" else (-np.inf, value)), x
    return None


def _step(graph: Graph, name: str, call: Any) -> tuple[tuple[str, Any], Any] | None:
    """An affine operator with a constant: (name, constant) and its argument."""
    if name not in ("add", "subtract", "multiply", "divide"):
        return None
    left, right = call.args
    if graph.real(right) is not None:
        return (name, right), left
    if name in ("add", "multiply") and graph.real(left) is not None:
        return (name, left), right
    return None
