"""Modules in the text that ``mod.astext()`` prints, in the forms 0.0.4 and 0.0.5."""

from __future__ import annotations

import re

from tvm_ext.frontend.relay.ast import Expr, Function, RelayModule
from tvm_ext.frontend.relay.errors import RelayError
from tvm_ext.frontend.relay.text_expressions import ExpressionParser, run
from tvm_ext.frontend.relay.text_meta import MetaSection
from tvm_ext.frontend.relay.text_tokens import Cursor, Token
from tvm_ext.frontend.relay.text_values import skip_brackets

_VERSIONS = ("0.0.4", "0.0.5")
# "v0.0.4", or '#[version = "0.0.5"]'; comments may stand before it.
_VERSION = re.compile(
    r"(?:\s|//[^\n]*\n|/\*(?:(?!\*/).)*\*/)*"
    r'(?:#\[\s*version\s*=\s*"([^"\n]*)"\s*\]|v(\d[\w.]*))',
    re.DOTALL,
)
# The metadata is the rest of the text.
_METADATA = re.compile(r"^(?:#\[\s*metadata\s*\]|METADATA:)", re.MULTILINE)


def read_text_module(text: str, source: str = "text") -> RelayModule:
    """Read a module, or a single function or expression as the module's ``main``.

    Parameters
    ----------
    text : str
    source : str
        The file's name, for errors.

    Returns
    -------
    RelayModule
        ``main`` and the functions that it calls; others aren't read. Variables have the names that
        Relay printed: unique ones, with a "v" before those that don't begin with a letter.

    Raises
    ------
    RelayError
        The text is truncated or no such form, has no ``main``, needs metadata that it doesn't have,
        or ``main`` needs what isn't read.
    """
    version = ""
    body = text
    if match := _VERSION.match(text):
        version = match.group(1) or match.group(2)
        if version not in _VERSIONS:
            raise RelayError(f"has the text form {version!r}: allowed are {_VERSIONS}", source)
        # Blanks in its place keep lines and columns.
        body = re.sub(r"[^\n]", " ", match.group()) + text[match.end() :]
    meta_text = ""
    if metadata := _METADATA.search(body):
        meta_text = body[metadata.end() :]
        body = body[: metadata.start()]
    cursor = Cursor(body, source)
    meta = MetaSection(meta_text, source, cursor)
    if cursor.at("fn", "free_var", "let") or cursor.token.kind == "graph":
        return RelayModule({"main": _single(cursor, meta)}, version)
    return RelayModule(_functions(cursor, meta), version)


def _single(cursor: Cursor, meta: MetaSection) -> Function:
    parser = ExpressionParser(cursor, meta.value, meta.expression)
    body: Expr = run(parser.scope())
    if cursor.token.kind != "end":
        raise cursor.error(f"expected the end of the text, found {cursor.found()}")
    for name, token in parser.global_names:
        raise cursor.error(f"the function @{name} is used, and not there", token)
    if isinstance(body, Function) and not parser.free_vars:
        return body
    return Function(tuple(parser.free_vars), body)


def _functions(cursor: Cursor, meta: MetaSection) -> dict[str, Function]:
    places = _places(cursor)
    if "main" not in places:
        raise RelayError(f"the module has no function main; it has {sorted(places)}", cursor.source)
    functions: dict[str, Function] = {}
    waiting: list[tuple[str, Token | None]] = [("main", None)]
    while waiting:
        name, token = waiting.pop()
        if name in functions:
            continue
        if name not in places:
            raise cursor.error(
                f"the function @{name} is used, and not there; there are {sorted(places)}", token
            )
        cursor.position = places[name]
        if not cursor.at("(", "["):
            raise cursor.error(f"@{name} isn't written in Relay: only such functions are read")
        parser = ExpressionParser(cursor, meta.value, meta.expression)
        functions[name] = run(parser.function())
        waiting += parser.global_names
    return functions


def _places(cursor: Cursor) -> dict[str, int]:
    """Where each function's parameters begin; algebraic types are gone past."""
    places: dict[str, int] = {}
    while cursor.token.kind != "end":
        is_type = cursor.accept("extern") | cursor.accept("type")
        if is_type:
            while not cursor.at("{", "def", "type", "extern") and cursor.token.kind != "end":
                cursor.take()
            skip_brackets(cursor, "{")
            continue
        # A function in TIR is "@name = primfn(...)", without "def".
        in_relay = cursor.accept("def")
        token = cursor.token
        if token.kind != "global":
            raise cursor.error(
                f"expected 'def @name', found {cursor.found()}: no module that Relay printed"
            )
        cursor.take()
        name = token.text[1:]
        if name in places:
            raise cursor.error(f"the function @{name} is defined twice", token)
        places[name] = cursor.position
        _skip_definition(cursor, token, in_relay)
    return places


def _skip_definition(cursor: Cursor, name: Token, in_relay: bool) -> None:
    if in_relay and cursor.at("="):
        # An external function: "def @name = meta[...][0]".
        cursor.take()
        cursor.take()
        return
    while not cursor.at("{"):
        if cursor.token.kind == "end":
            raise cursor.error(f"the function {name.text} has no body", name)
        if not skip_brackets(cursor, "(") and not skip_brackets(cursor, "["):
            cursor.take()
    skip_brackets(cursor, "{")
