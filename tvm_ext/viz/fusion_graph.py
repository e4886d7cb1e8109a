"""A fused graph as a picture: what is in each layer, and what flows between them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import graphviz
import tvm
from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.passes import dataflow as df
from tvm_ext.passes.fusion.mapping_type import MappingType, most_complex
from tvm_ext.passes.fusion.operator_types import input_types
from tvm_ext.viz.drawing import Drawing

COLOURS = {
    MappingType.ONE_TO_ONE: "#b7e1b0",
    MappingType.REORGANIZE: "#d5d5d5",
    MappingType.SHUFFLE: "#fbe183",
    MappingType.ONE_TO_MANY: "#a3cbe8",
    MappingType.MANY_TO_MANY: "#f7b27a",
}
_FONT = "Helvetica,Arial,sans-serif"


@dataclass(eq=False)
class _Value:
    """A tensor: the node that makes it and those that read it."""

    label: str
    source: str
    readers: list[str] = field(default_factory=list)


@dataclass
class _Layer:
    """A drawn layer: its nodes, and the values that no other layer reads."""

    name: str
    nodes: list[tuple[str, str, str]] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)


def fusion_graph(mod: tvm.IRModule, start: int = 0, stop: int | None = None) -> Drawing:
    """Draw the layers of a fused module.

    Layers are boxes under their names, operators nodes with the shapes of their weights below,
    coloured by the most complex of their mapping types for what isn't a weight. Edges are values
    with their shapes; a value that several operators read is one node, from which edges go to them.

    Parameters
    ----------
    mod : IRModule
        As `tvm_ext.pipeline.graph_pipeline` leaves it: calls of `main` are to group functions.
    start, stop : int, optional
        Which layers to draw, as in a slice; those next to them become dashed stubs.

    Returns
    -------
    Drawing
        A `graphviz.Digraph`; it shows as SVG in a notebook, and has `svg()` and `png()`.

    Raises
    ------
    ModelError
        `main` has operators outside of groups.
    """
    calls = [var for var, expr in df.bindings(mod["main"]) if isinstance(expr, relax.Call)]
    picture = _Picture(mod, {str(var.name) for var in calls[start:stop]})
    picture.read()
    return picture.drawing()


class _Picture:
    """The nodes and values of a module, read once from top to bottom."""

    def __init__(self, mod: tvm.IRModule, chosen: set[str]) -> None:
        self.mod, self.chosen = mod, chosen
        self.values: list[_Value] = []
        self.layers: list[_Layer] = []
        # Model inputs, outputs and layers that aren't chosen; drawn where an edge ends in them.
        self.outside: dict[str, tuple[str, str]] = {}

    def read(self) -> None:
        """Take `main` in."""
        func = self.mod["main"]
        env = {p: self.made(p.ty, self.stub(p.name, "solid")) for p in func.params}
        for var, expr in df.bindings(func):
            is_call = isinstance(expr, relax.Call)
            env[var] = self.layer(var, expr, env) if is_call else _at(expr, env)
        names = (func.attrs or {}).get("tvm_ext.output_names", [])
        results = _leaves(_at(df.result(func), env))
        for i, value in enumerate(results):
            name = str(names[i]) if len(names) == len(results) else f"output {i}"
            value.readers.append(self.stub(name, "solid"))

    def stub(self, name: str, style: str) -> str:
        node = f"outside{len(self.outside)}"
        self.outside[node] = (name, style)
        return node

    def made(self, ty: Any, source: str) -> Any:
        """A new value, or a list of them for a tuple."""
        if isinstance(ty, relax.TupleType):
            return [self.made(f, source) for f in ty.fields]
        value = _Value(_shape(ty), source)
        self.values.append(value)
        return value

    def layer(self, var: Any, call: relax.Call, outer: dict[Any, Any]) -> Any:
        """Read a layer; what it makes."""
        if not isinstance(call.op, tvm.ir.GlobalVar):
            raise ModelError(f"{df.op_name(call)} is in no group; run graph_pipeline() first")
        arguments = [_at(a, outer) for a in call.args]
        if var.name not in self.chosen:
            node = self.stub(var.name, "dashed")
            for value in _leaves(arguments):
                value.readers.append(node)
            return self.made(var.ty, node)
        layer = _Layer(str(var.name))
        self.layers.append(layer)
        function = self.mod[call.op]
        env = dict(zip(function.params, arguments, strict=True))
        for inner, expr in df.bindings(function):
            if not isinstance(expr, relax.Call):
                env[inner] = _at(expr, env)
                continue
            node = f"{len(self.layers)}.{len(layer.nodes)}"
            for value in _leaves([_at(a, env) for a in expr.args]):
                value.readers.append(node)
            layer.nodes.append((node, _label(expr), COLOURS[_type(expr)]))
            layer.ids.add(node)
            env[inner] = self.made(inner.ty, node)
        return _at(df.result(function), env)

    def drawing(self) -> Drawing:
        """What was read, as a graph."""
        graph = Drawing(
            "fusion",
            graph_attr={
                "fontname": _FONT, "fontsize": "11", "ranksep": "0.3", "nodesep": "0.25",
                "label": _legend(), "labelloc": "b", "labeljust": "l",
            },
            node_attr={"fontname": _FONT, "fontsize": "11", "height": "0.3", "margin": "0.1,0.04"},
            edge_attr={"fontname": _FONT, "fontsize": "9", "arrowsize": "0.6", "color": "#555555"},
        )  # fmt: skip
        shared: dict[str, list[str]] = {}
        used: set[str] = set()
        self._edges(graph, shared, used)
        for number, layer in enumerate(self.layers):
            with graph.subgraph(name=f"cluster_{number}") as box:
                box.attr(
                    label=graphviz.escape(layer.name), style="rounded,filled", labeljust="l",
                    labelloc="t", color="#999999", fillcolor="#f7f7f7",
                )  # fmt: skip
                for node, label, colour in layer.nodes:
                    box.node(
                        node, label, shape="box", style="rounded,filled", fillcolor=colour,
                        color="#666666",
                    )  # fmt: skip
                for node in layer.ids:
                    for name in shared.get(node, ()):
                        box.node(name)
        for node, (name, style) in self.outside.items():
            if node in used:
                graph.node(node, graphviz.escape(name), shape="ellipse", style=style)
        return graph

    def _edges(self, graph: Drawing, shared: dict[str, list[str]], used: set[str]) -> None:
        """Draw the values; note which stubs they touch, and which of their nodes is in a layer."""
        drawn = {node for layer in self.layers for node in layer.ids}
        owner = {node: layer for layer in self.layers for node in layer.ids}
        for number, value in enumerate(self.values):
            readers = list(dict.fromkeys(value.readers))
            if value.source not in drawn:
                readers = [reader for reader in readers if reader in drawn]
            if not readers:
                continue
            used.update([value.source, *readers])
            label = graphviz.escape(value.label)
            if len(readers) == 1:
                graph.edge(value.source, readers[0], f" {label}")
                continue
            node = f"value{number}"
            graph.node(node, label, shape="plain", fontsize="9", fontcolor="#333333")
            graph.edge(value.source, node, dir="none")
            for reader in readers:
                graph.edge(node, reader)
            layer = owner.get(value.source)
            if layer is not None and layer.ids.issuperset(readers):
                shared.setdefault(value.source, []).append(node)


def _at(expr: Any, env: dict[Any, Any]) -> Any:
    """What an expression that computes nothing stands for; None for constants and shapes."""
    if isinstance(expr, relax.Tuple):
        return [_at(f, env) for f in expr.fields]
    if isinstance(expr, relax.TupleGetItem):
        return _at(expr.tuple_value, env)[expr.index]
    return env[expr] if isinstance(expr, relax.Var) else None


def _leaves(value: Any) -> list[_Value]:
    if isinstance(value, list):
        return [leaf for item in value for leaf in _leaves(item)]
    return [] if value is None else [value]


def _type(call: relax.Call) -> MappingType:
    """The operator's type for what flows in, whatever it is for its weights."""
    types = input_types(call)
    flowing = [own for tensor, own in types.items() if df.value_of(tensor) is None]
    return most_complex(flowing or types.values())


def _label(call: relax.Call) -> str:
    """The operator, and the shapes of its constants with more than one element."""
    name = df.op_name(call).rsplit(".", 1)[-1]
    arrays = [t for t in df.tensors(call) if df.value_of(t) is not None]
    shapes = [_shape(t.ty) for t in arrays if any(d != 1 for d in df.shape_of(t))]
    return "\n".join(graphviz.escape(line) for line in (name, *shapes))


def _shape(ty: Any) -> str:
    shape = "×".join(str(int(d)) for d in ty.shape) or "scalar"
    return shape if str(ty.dtype) == "float32" else f"{shape} {ty.dtype}"


def _legend() -> str:
    cells = "".join(f'<td bgcolor="{c}"> {t.value} </td>' for t, c in COLOURS.items())
    table = (
        f'<table border="0" cellborder="0" cellspacing="4" cellpadding="3"><tr>{cells}</tr></table>'
    )
    return f"<{table}>"
