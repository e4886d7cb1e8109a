"""Cuts a quantised model into subgraphs for an accelerator and the rest for the CPU."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import tvm
from tvm import relax

from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.byoc.graph import Graph
from tvm_ext.codegen.byoc.match import Match, Refusal
from tvm_ext.codegen.byoc.matcher import Matcher, matched
from tvm_ext.codegen.byoc.regions import Region, live_values, regions_of, sources
from tvm_ext.codegen.byoc.subgraph import RUN, Subgraph, make_subgraph
from tvm_ext.codegen.errors import LoweringError
from tvm_ext.codegen.lowering import RoomCheck
from tvm_ext.passes import dataflow as df

_QUIET = ("quantize", "dequantize")


@dataclass(frozen=True)
class Partition:
    """A model cut in two.

    Attributes
    ----------
    subgraphs : tuple of Subgraph
        In the order in which `mod` calls them.
    refusals : tuple of Refusal
        Every operator that stays on the CPU, with the reason, in the model's order.
    mod : IRModule
        The model; each subgraph is one ``call_dps_packed`` of `RUN`, whose arguments are the
        subgraph's document as uint8, the inputs, and the constants.
    macs, offloaded_macs : int
        Multiply-accumulates of the model's convolutions and products, and those in subgraphs.
    """

    subgraphs: tuple[Subgraph, ...]
    refusals: tuple[Refusal, ...]
    mod: tvm.IRModule
    macs: int
    offloaded_macs: int

    @property
    def share(self) -> float:
        """Offloaded part of the multiply-accumulates, 0 to 1."""
        return self.offloaded_macs / self.macs if self.macs else 0.0

    def __str__(self) -> str:
        lines = [
            f"{len(self.subgraphs)} subgraphs, {self.share:.2%} of {self.macs:,} "
            "multiply-accumulates on the accelerator",
            *(f"  {s.network.name}: {len(s.network.layers)} layers" for s in self.subgraphs),
        ]
        if self.refusals:
            lines += ["on the CPU:", *(f"  {refusal}" for refusal in self.refusals)]
        return "\n".join(lines)


def partition(mod: tvm.IRModule, accelerator: Accelerator) -> Partition:
    """Offload what an accelerator takes.

    Quantised operators that follow each other become one subgraph, whatever they do: nothing goes
    back to system memory between them but what the CPU reads, too.

    Parameters
    ----------
    mod : IRModule
        As `tvm_ext.load_model` gives it; its weights are still dequantised in the graph.
    accelerator : Accelerator

    Raises
    ------
    LoweringError
        A subgraph exceeds the system memory's addresses. A layer that doesn't fit is refused.
    """
    mod, matcher = matched(mod, accelerator)
    graph, room = matcher.graph, RoomCheck(accelerator)
    _refuse_large(matcher, room)
    regions = regions_of(graph, matcher.matches)
    chosen = {m.output.var: m for region in regions for m in region.matches}
    live = live_values(graph, chosen)
    names = (f"accelerator_{i}" for i in range(len(regions)))
    subgraphs = [make_subgraph(r, n, accelerator) for r, n in zip(regions, names, strict=True)]
    for subgraph in subgraphs:
        room.check(subgraph.network)
    offloaded = sum(region.macs for region in regions)
    return Partition(
        tuple(subgraphs),
        tuple(_refusals(graph, matcher, chosen, live)),
        _rewritten(mod, graph, regions, subgraphs, chosen, live),
        offloaded + sum(_macs(graph.value(var)) for var in live - set(chosen)),
        offloaded,
    )


def _refuse_large(matcher: Matcher, room: RoomCheck) -> None:
    """Leave to the CPU what can't be lowered, so that no first run finds it."""
    for match in list(matcher.matches.values()):
        region = Region((match,), match.inputs, (match.output,))
        try:
            room.check(make_subgraph(region, match.name, matcher.accelerator).network)
        except LoweringError as error:
            matcher.refuse(match, str(error))


def _refusals(
    graph: Graph, matcher: Matcher, chosen: dict[Any, Match], live: set[Any]
) -> list[Refusal]:
    """Why each operator that the CPU still computes isn't offloaded."""
    matched = {v: m for m in matcher.matches.values() for v in (m.output.var, *m.inside)}
    found = []
    for var, value in graph.pairs:
        if var not in live or var in chosen:
            continue
        name = df.op_name(value).removeprefix("relax.")
        follows = var in matcher.epilogues and var not in matched
        if var in matcher.refusals:
            found.append(matcher.refusals[var])
        elif not name or name in _QUIET or follows or graph.real(var) is not None:
            continue
        elif var in matched:
            reason = "no product is next to it; allowed: with a convolution or matrix product"
            found.append(Refusal(graph.name(var), name, reason))
        else:
            kind = str(df.dtype_of(var)) if isinstance(var.ty, relax.TensorType) else "a tuple"
            reason = f"its result is {kind}; allowed: dequantised operands, a quantised result"
            found.append(Refusal(graph.name(var), name, reason))
    return found


def _macs(call: Any) -> int:
    """Multiply-accumulates of a convolution or product, otherwise 0."""
    name = df.op_name(call)
    if name.startswith("relax.nn.conv"):
        # A transposed convolution's weights are (Cin, Cout / groups, ...): it scatters its input.
        pixels = call.args[0] if "transpose" in name else call
        return prod(df.shape_of(pixels)) * prod(df.shape_of(call.args[1])[1:])
    if name == "relax.matmul":
        return prod(df.shape_of(call)) * df.shape_of(call.args[0])[-1]
    return 0


def _rewritten(
    mod: tvm.IRModule, graph: Graph, regions: list[Region], subgraphs: list[Subgraph],
    chosen: dict[Any, Match], live: set[Any],
) -> tvm.IRModule:  # fmt: skip
    """`main` with one call a region."""
    func = graph.func
    owner = {m.output.var: i for i, region in enumerate(regions) for m in region.matches}
    others = {gv: f for gv, f in mod.functions.items() if gv.name_hint != "main"}
    builder = relax.BlockBuilder(tvm.IRModule(others))
    env: df.Env = {}
    with builder.function("main", list(func.params), attrs=dict(func.attrs or {})):
        with builder.dataflow():
            for step in _schedule(graph, regions, owner, chosen, live):
                if isinstance(step, int):
                    _emit_region(builder, env, regions[step], subgraphs[step])
                else:
                    new = df.substitute(graph.bound(step), env)
                    env[step] = builder.emit(new, step.name)
            output = builder.emit_output(df.substitute(df.result(func), env))
        builder.emit_func_output(output)
    return relax.transform.CanonicalizeBindings()(builder.get())


def _emit_region(
    builder: relax.BlockBuilder, env: df.Env, region: Region, subgraph: Subgraph
) -> None:
    document = np.frombuffer(subgraph.document().encode(), "uint8")
    args = [
        df.constant(document),
        *(env.get(x.var, x.var) for x in region.inputs),
        *(df.constant(array) for array in subgraph.arrays()),
    ]
    types = [x.var.ty for x in region.outputs]
    call = relax.op.call_dps_packed(RUN, relax.Tuple(args), types if len(types) > 1 else types[0])
    result = builder.emit(call, subgraph.network.name)
    for i, x in enumerate(region.outputs):
        env[x.var] = result if len(types) == 1 else relax.TupleGetItem(result, i)


def _schedule(
    graph: Graph, regions: list[Region], owner: dict[Any, int], chosen: dict[Any, Match],
    live: set[Any],
) -> list[Any]:  # fmt: skip
    """Regions (numbers) and CPU values (variables) in an order in which all inputs come first."""
    first = [min(graph.order[m.output.var] for m in region.matches) for region in regions]
    steps = {owner.get(var, var) for var in live if var in graph.order}
    needs: dict[Any, set[Any]] = {step: set() for step in steps}
    for var in live & set(graph.order):
        step = owner.get(var, var)
        for source in sources(var, graph, chosen):
            if source in graph.order and owner.get(source, source) != step:
                needs[step].add(owner.get(source, source))
    readers: dict[Any, list[Any]] = {}
    for step, needed in needs.items():
        for source in needed:
            readers.setdefault(source, []).append(step)

    def place(step: Any) -> int:
        return first[step] if isinstance(step, int) else graph.order[step]

    at = {place(step): step for step in steps}
    ready = [place(step) for step in steps if not needs[step]]
    heapq.heapify(ready)
    ordered = []
    while ready:
        step = at[heapq.heappop(ready)]
        ordered.append(step)
        for reader in readers.get(step, ()):
            needs[reader].discard(step)
            if not needs[reader]:
                heapq.heappush(ready, place(reader))
    return ordered
