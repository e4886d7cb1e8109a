"""The expressions in a JSON graph, one object a node."""

from __future__ import annotations

from collections.abc import Callable

from tvm_ext.frontend.relay.ast import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Op,
    Tuple,
    TupleGetItem,
    Type,
    Var,
)
from tvm_ext.frontend.relay.attribute_defaults import (
    complete_attributes,
    copy_plain,
    operator_schema,
    record_schema,
)
from tvm_ext.frontend.relay.json_nodes import Graph, Node
from tvm_ext.frontend.relay.json_values import plain_value, record_values, type_of

# Before 0.12 these records called a weight of (in, out / groups, ...) "OI..."; since then "IO...".
_RENAMED_KERNELS = ("Conv1DTransposeAttrs", "Conv3DTransposeAttrs")
_SWAP_OI = str.maketrans("OI", "IO")


class ExpressionReader:
    """Makes the expressions of a graph, each node once, however often it is used."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._done: dict[int, Expr] = {}
        self._vars: dict[str, Var] = {}
        self._ops: dict[str, Op] = {}
        self._types: dict[tuple[int, bool], Type | None] = {}
        self._kernels_swapped = _version(graph.version) < (0, 12)
        self.global_names: list[str] = []

    def read(self, root: Node) -> Expr:
        """The expression of a node.

        Graphs are thousands of calls deep, so the nodes that wait for others are on a list.

        Raises
        ------
        RelayError
            A node of another kind, damaged, or part of a cycle.
        """
        waiting = [root]
        opened: set[int] = set()
        while waiting:
            node = waiting[-1]
            if node.index in self._done:
                waiting.pop()
                continue
            pending = [c for c in self._children(node) if c.index not in self._done]
            if not pending:
                self._done[node.index] = self._make(node)
                waiting.pop()
            elif node.index in opened:
                raise self._graph.error(node, "depends on itself")
            else:
                opened.add(node.index)
                # The first one is made first, so that names come in the order of the file.
                waiting.extend(reversed(pending))
        return self._done[root.index]

    def _children(self, node: Node) -> list[Node]:
        """The expressions that a node is made of."""
        graph = self._graph
        match node.type_key:
            case "relay.Call":
                return [graph.child(node, "op"), *graph.items(graph.child(node, "args"))]
            case "relay.Tuple":
                return graph.items(graph.child(node, "fields"))
            case "relay.TupleGetItem":
                return [graph.child(node, "tuple_value")]
            case "relay.Let":
                return [graph.child(node, name) for name in ("var", "value", "body")]
            case "relay.If":
                return [graph.child(node, n) for n in ("cond", "true_branch", "false_branch")]
            case "relay.Function":
                params = graph.items(graph.child(node, "params"))
                return [*params, graph.child(node, "body")]
        return []

    def _make(self, node: Node) -> Expr:
        make = _MAKERS.get(node.type_key)
        if make is None:
            kinds = ", ".join(sorted(_MAKERS))
            raise self._graph.error(node, f"stands where an expression must be: {kinds}")
        return make(self, node)

    def _made(self, node: Node, name: str) -> Expr:
        return self._done[self._graph.child(node, name).index]

    def _var_made(self, node: Node, owner: Node) -> Var:
        made = self._done[node.index]
        if not isinstance(made, Var):
            raise self._graph.error(owner, f"binds node {node.index}, a {node.type_key}")
        return made

    def _all_made(self, node: Node, name: str) -> tuple[Expr, ...]:
        nodes = self._graph.items(self._graph.child(node, name))
        return tuple(self._done[item.index] for item in nodes)

    def _type(self, node: Node, name: str, inferred: bool = False) -> Type | None:
        if inferred and name not in node.attrs:
            return None
        target = self._graph.child(node, name)
        key = (target.index, inferred)
        if key not in self._types:
            self._types[key] = type_of(self._graph, target, inferred)
        return self._types[key]

    def _var(self, node: Node) -> Var:
        # Two nodes are the same variable if they share the identity in "vid".
        vid = self._graph.attr(node, "vid")
        annotation = self._type(node, "type_annotation")
        if vid not in self._vars:
            name = self._graph.string(self._graph.child(node, "vid"), "name_hint")
            self._vars[vid] = Var(name, annotation or self._type(node, "_checked_type_", True))
        return self._vars[vid]

    def _global_var(self, node: Node) -> GlobalVar:
        name = self._graph.string(node, "name_hint")
        self.global_names.append(name)
        return GlobalVar(name)

    def _constant(self, node: Node) -> Constant:
        return Constant(self._graph.array(node, "data"))

    def _op(self, node: Node) -> Op:
        if not node.text:
            raise self._graph.error(node, "an operator without a name")
        return self._ops.setdefault(node.text, Op(node.text))

    def _call(self, node: Node) -> Call:
        callee = self._made(node, "op")
        record = self._graph.child(node, "attrs") if "attrs" in node.attrs else None
        return Call(
            callee,
            self._all_made(node, "args"),
            self._attributes(node, callee, record),
            self._type(node, "_checked_type_", True),
        )

    def _attributes(self, node: Node, callee: Expr, record: Node | None) -> dict[str, object]:
        values: dict[str, object] = {}
        own = None
        if record is not None and record.type_key:
            read = plain_value(self._graph, record)
            values = read if isinstance(read, dict) else record_values(self._graph, record)
            own = record_schema(record.type_key)
            if self._kernels_swapped and own is not None and own.name in _RENAMED_KERNELS:
                layout = str(values.get("kernel_layout", own.defaults["kernel_layout"]))
                values["kernel_layout"] = layout.translate(_SWAP_OI)
        schema = (operator_schema(callee.name) if isinstance(callee, Op) else None) or own
        if schema is None:
            return values
        complete, missing = complete_attributes(schema, values)
        if missing:
            raise self._graph.error(node, f"the attributes {missing} of {schema.name} are missing")
        return complete

    def _tuple(self, node: Node) -> Tuple:
        return Tuple(self._all_made(node, "fields"))

    def _get_item(self, node: Node) -> TupleGetItem:
        index = self._graph.number(node, "index")
        if index < 0:
            raise self._graph.error(node, f"index is {index}: allowed are 0 and above")
        return TupleGetItem(self._made(node, "tuple_value"), index)

    def _let(self, node: Node) -> Let:
        var = self._var_made(self._graph.child(node, "var"), node)
        return Let(var, self._made(node, "value"), self._made(node, "body"))

    def _if(self, node: Node) -> If:
        return If(
            self._made(node, "cond"),
            self._made(node, "true_branch"),
            self._made(node, "false_branch"),
        )

    def _function(self, node: Node) -> Function:
        graph = self._graph
        params = graph.items(graph.child(node, "params"))
        attrs = graph.child(node, "attrs") if "attrs" in node.attrs else None
        values = plain_value(graph, attrs) if attrs is not None else None
        return Function(
            tuple(self._var_made(param, node) for param in params),
            self._made(node, "body"),
            copy_plain(values) if isinstance(values, dict) else {},
            self._type(node, "ret_type"),
        )


_MAKERS: dict[str, Callable[[ExpressionReader, Node], Expr]] = {
    "relay.Var": ExpressionReader._var,
    "GlobalVar": ExpressionReader._global_var,
    "relay.GlobalVar": ExpressionReader._global_var,
    "relay.Constant": ExpressionReader._constant,
    "Op": ExpressionReader._op,
    "relay.Op": ExpressionReader._op,
    "relay.Call": ExpressionReader._call,
    "relay.Tuple": ExpressionReader._tuple,
    "relay.TupleGetItem": ExpressionReader._get_item,
    "relay.Let": ExpressionReader._let,
    "relay.If": ExpressionReader._if,
    "relay.Function": ExpressionReader._function,
}


def _version(text: str) -> tuple[int, ...]:
    """The first two numbers of a version; of a file that doesn't say it, a late one."""
    parts = text.split(".")[:2]
    return tuple(int(p) for p in parts) if all(p.isdecimal() for p in parts) else (0, 19)
