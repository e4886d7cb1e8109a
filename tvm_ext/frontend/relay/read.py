"""Saved Relay modules: which form a file has, and reading it."""

from __future__ import annotations

import re
from pathlib import Path

from tvm_ext.frontend.relay.ast import RelayModule
from tvm_ext.frontend.relay.errors import RelayError
from tvm_ext.frontend.relay.json_graph import read_json_module
from tvm_ext.frontend.relay.text_module import read_text_module

_SNIFFED = 4096
# Graphs of save_json begin with one of these keys; other JSON files of TVM's don't.
_JSON = re.compile(
    r'\ufeff?\s*\{\s*"(?:root"\s*:\s*\d|b64ndarrays"\s*:|nodes"\s*:\s*\[\s*\{\s*"type_key"'
    r'|attrs"\s*:\s*\{\s*"tvm_version")'
)
_TEXT = re.compile(
    r"(?:\s|//[^\n]*\n|/\*(?:(?!\*/).)*\*/)*"
    r"(?:#\[\s*version\b|v0\.0\.\d+\s|def @|free_var %|fn ?[(\[]\s*[%)])",
    re.DOTALL,
)


def read_relay_json(text_or_path: str | Path) -> RelayModule:
    """Read what ``tvm.ir.save_json(mod)`` of TVM 0.8 to 0.19 wrote.

    Parameters
    ----------
    text_or_path : str or Path
        A file's path, or its text.

    Returns
    -------
    RelayModule
        Constants included; ``main`` and the functions that it calls.

    Raises
    ------
    RelayError
        The file is missing, truncated, no such graph, or holds what isn't read: algebraic types,
        references, functions in TIR.
    """
    text, source = _text(text_or_path)
    return read_json_module(text, source)


def read_relay_text(text_or_path: str | Path) -> RelayModule:
    """Read what ``mod.astext()`` of TVM 0.6 to 0.19 wrote, with or without its metadata section.

    Parameters
    ----------
    text_or_path : str or Path
        A file's path, or its text.

    Returns
    -------
    RelayModule
        ``main`` and the functions that it calls.

    Raises
    ------
    RelayError
        As `read_relay_json`; or the text needs the metadata section, and has none.
    """
    text, source = _text(text_or_path)
    return read_text_module(text, source)


def is_relay_json(path: str | Path) -> bool:
    """Whether a file begins as a graph of ``tvm.ir.save_json`` does; False if it isn't there."""
    return bool(_JSON.match(_head(path)))


def is_relay_text(path: str | Path) -> bool:
    """Whether a file begins as Relay's text form does; False if it isn't there."""
    return bool(_TEXT.match(_head(path)))


def _text(text_or_path: str | Path) -> tuple[str, str]:
    """The text, and what to call it."""
    if isinstance(text_or_path, str) and (
        "\n" in text_or_path or _JSON.match(text_or_path) or _TEXT.match(text_or_path)
    ):
        return text_or_path, "text"
    path = Path(text_or_path)
    try:
        return path.read_bytes().decode("utf-8-sig"), str(path)
    except UnicodeDecodeError as error:
        raise RelayError(
            f"isn't a text: byte {error.start} is {error.object[error.start]:#04x}", str(path)
        ) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise RelayError(f"can't be read: {reason}", str(path)) from error


def _head(path: str | Path) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(_SNIFFED).decode(errors="replace")
    except (OSError, ValueError):
        return ""
