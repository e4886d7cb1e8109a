"""The expressions of Relay's text form.

Each parser of an expression is a generator that yields the parser of a part and gets the part back.
`run` drives them with a list in place of Python's stack, so that no text is too deep.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeVar, cast

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
from tvm_ext.frontend.relay.attribute_defaults import complete_attributes, operator_schema
from tvm_ext.frontend.relay.text_tokens import Cursor, Token
from tvm_ext.frontend.relay.text_values import (
    literal,
    parse_type,
    parse_value,
    skip_brackets,
    type_in_note,
)
from tvm_ext.frontend.relay.text_variables import Variables

Result = TypeVar("Result")
# Yields parsers, gets what they found, returns what it found itself.
Parser = Generator["Parser[Any]", Any, Result]

# What Relay can say and this reader can't.
_UNREAD = {
    "match": "pattern matching on algebraic types",
    "ref": "references",
    "ref_read": "references",
    "ref_write": "references",
}


def run(parser: Parser[Result]) -> Result:
    """Drive a parser and all that it yields."""
    active: list[Parser[Any]] = [parser]
    found: Any = None
    while active:
        try:
            active.append(active[-1].send(found))
            found = None
        except StopIteration as stop:
            active.pop()
            found = stop.value
    return cast(Result, found)


class ExpressionParser:
    """Parses functions of one text.

    Parameters
    ----------
    cursor : Cursor
    meta_value, meta_expression : callable
        What a token ``meta[...][...]`` stands for, as plain data and as an expression.

    Attributes
    ----------
    global_names : list of (str, Token)
        The functions that the expressions refer to.
    free_vars : list of Var
        Variables of ``free_var``.
    """

    def __init__(
        self,
        cursor: Cursor,
        meta_value: Callable[[Token], Any],
        meta_expression: Callable[[Token], Expr],
    ) -> None:
        self._cursor = cursor
        self._meta_value = meta_value
        self._meta_expression = meta_expression
        self._variables = Variables()
        self._graph: dict[str, Expr] = {}
        self._ops: dict[str, Op] = {}
        self.global_names: list[tuple[str, Token]] = []
        self.free_vars: list[Var] = []

    def function(self) -> Parser[Function]:
        """``[generics](%x: type, Primitive=1) -> type { ... }``."""
        cursor = self._cursor
        skip_brackets(cursor, "[")
        cursor.expect("(", "before the parameters")
        outer = self._variables.depth
        params: list[Var] = []
        attrs: dict[str, Any] = {}
        while not cursor.accept(")"):
            if cursor.token.kind == "local":
                params.append(self._declare())
            else:
                name = cursor.expect_kind("name", "a parameter or an attribute").text
                cursor.expect("=", "behind an attribute's name")
                value = parse_value(cursor, self._meta_value)
                # Where a function runs isn't said in JSON's attributes either.
                if name != "virtual_device":
                    attrs[name] = value
            if not cursor.at(")"):
                cursor.expect(",", "or ')'")
        ret_type = self._type() if cursor.accept("->") else None
        body = yield self._block()
        self._variables.leave(outer)
        return Function(tuple(params), body, attrs, ret_type)

    def scope(self) -> Parser[Expr]:
        """``%0 = value; let %x = value; result``."""
        cursor = self._cursor
        outer = self._variables.depth
        lets: list[tuple[Var, Expr]] = []
        while True:
            token = cursor.token
            if token.kind == "graph" and cursor.after().text == "=":
                cursor.take()
                cursor.expect("=")
                if "." in token.text:
                    raise cursor.error(f"{token.text!r} can't be assigned", token)
                self._graph[token.text] = yield self.expression()
                cursor.expect(";", "behind a value")
            elif cursor.accept("let"):
                # The value may use the variable: that is how Relay writes a loop.
                var = self._declare()
                cursor.expect("=", "behind the variable of a let")
                value = yield self.expression()
                cursor.expect(";", "behind a value")
                lets.append((var, value))
            elif cursor.accept("free_var"):
                self.free_vars.append(self._declare())
                cursor.accept(";")
            else:
                break
        body: Expr = yield self.expression()
        self._variables.leave(outer)
        for var, value in reversed(lets):
            body = Let(var, value, body)
        return body

    def expression(self) -> Parser[Expr]:
        """An atom with calls and fields behind it: ``%f(%x).0``."""
        cursor = self._cursor
        value: Expr = yield self._atom()
        while True:
            if cursor.at("("):
                value = yield self._call(value)
            elif cursor.accept("."):
                token = cursor.expect_kind("number", "a field's number")
                if not token.text.replace(".", "").isdecimal():
                    raise cursor.error(f"expected a field's number, found {token.text!r}", token)
                value = _fields(value, token.text.split("."))
            else:
                return value

    def _block(self) -> Parser[Expr]:
        self._cursor.expect("{")
        body = yield self.scope()
        self._cursor.expect("}", "behind a result")
        return cast(Expr, body)

    def _declare(self) -> Var:
        """``%x {virtual_device=...}: type``."""
        cursor = self._cursor
        token = cursor.expect_kind("local", "a variable")
        skip_brackets(cursor, "{")
        annotation = self._type() if cursor.accept(":") else None
        return self._variables.declare(token.text[1:], annotation)

    def _type(self) -> Type | None:
        return parse_type(self._cursor, self._meta_value)

    def _atom(self) -> Parser[Expr]:
        cursor = self._cursor
        token = cursor.token
        if token.kind == "name" and token.text not in ("True", "False"):
            if token.text in _UNREAD:
                raise cursor.error(f"{token.text!r}: {_UNREAD[token.text]} aren't read")
            if cursor.accept("fn"):
                found = yield self.function()
                return cast(Expr, found)
            if cursor.accept("if"):
                found = yield self._if()
                return cast(Expr, found)
        elif cursor.at("("):
            found = yield self._parentheses()
            return cast(Expr, found)
        elif cursor.at("{"):
            found = yield self._block()
            return cast(Expr, found)
        return self._leaf(cursor.take())

    def _leaf(self, token: Token) -> Expr:
        """An expression of one token."""
        cursor = self._cursor
        if token.kind == "number" or (token.kind == "name" and token.text in ("True", "False")):
            return Constant(literal(cursor, token))
        if token.kind == "name":
            return self._ops.setdefault(token.text, Op(token.text))
        if token.kind == "graph":
            name, *fields = token.text.split(".")
            if name not in self._graph:
                raise cursor.error(f"{name} is used before it is assigned", token)
            return _fields(self._graph[name], fields)
        if token.kind == "local":
            var, fields = self._variables.find(token.text[1:])
            if var is None:
                raise cursor.error(f"the variable {token.text} isn't declared", token)
            return _fields(var, fields)
        if token.kind == "global":
            self.global_names.append((token.text[1:], token))
            return GlobalVar(token.text[1:])
        if token.kind == "meta":
            return self._meta_expression(token)
        raise cursor.error(
            f"expected an expression, found {repr(token.text) if token.text else 'the end'}", token
        )

    def _if(self) -> Parser[Expr]:
        cursor = self._cursor
        cursor.expect("(", "before a condition")
        condition = yield self.expression()
        cursor.expect(")", "behind a condition")
        true = yield self._block()
        cursor.expect("else")
        false = yield self._block()
        return If(condition, true, false)

    def _parentheses(self) -> Parser[Expr]:
        """A tuple, or a single expression or scope in parentheses."""
        cursor = self._cursor
        cursor.expect("(")
        fields: list[Expr] = []
        while not cursor.accept(")"):
            fields.append((yield self.scope()))
            if cursor.at(")") and len(fields) == 1:
                cursor.take()
                return fields[0]
            if not cursor.at(")"):
                cursor.expect(",", "or ')'")
        return Tuple(tuple(fields))

    def _call(self, callee: Expr) -> Parser[Expr]:
        cursor = self._cursor
        opening = cursor.expect("(")
        args: list[Expr] = []
        attrs: dict[str, Any] = {}
        while not cursor.at(")"):
            token = cursor.token
            if token.kind == "name" and cursor.after().text == "=":
                cursor.take()
                cursor.expect("=")
                if token.text in attrs:
                    raise cursor.error(f"the attribute {token.text!r} stands twice", token)
                attrs[token.text] = parse_value(cursor, self._meta_value)
            elif token.kind == "meta" and token.text.startswith(("meta[relay.attrs.", "meta[Dict")):
                record = self._meta_value(cursor.take())
                if not isinstance(record, dict):
                    raise cursor.error(f"{token.text} holds no attributes", token)
                attrs.update(record)
            else:
                args.append((yield self.expression()))
            if not cursor.at(")"):
                cursor.expect(",", "or ')'")
        closing = cursor.expect(")")
        # Of a callee that isn't an operator, Relay also prints which record its attributes are.
        attrs.pop("attrs_type_key", None)
        schema = operator_schema(callee.name) if isinstance(callee, Op) else None
        if schema is not None:
            attrs, missing = complete_attributes(schema, attrs)
            if missing:
                raise cursor.error(
                    f"the attributes {missing} of {cast(Op, callee).name} are missing", opening
                )
        noted = type_in_note(closing.type_note) if closing.type_note else None
        return Call(callee, tuple(args), attrs, noted)


def _fields(value: Expr, indices: list[str]) -> Expr:
    for index in indices:
        value = TupleGetItem(value, int(index))
    return value
