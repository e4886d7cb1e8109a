"""Write sections of RESULTS.md."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

RESULTS = Path(__file__).with_name("RESULTS.md")

_TITLE = (
    "# Results\n\nEach section is written by the benchmark that it names; do not edit it by hand.\n"
)


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format a table: the first column to the left, the others to the right.

    Raises
    ------
    ValueError
        If a row has not as many cells as the header.
    """
    for row in rows:
        if len(row) != len(header):
            raise ValueError(f"the row {row!r} has {len(row)} cells, the header {len(header)}")
    rule = ["---", *["---:"] * (len(header) - 1)]
    lines = [header, rule, *([cell.replace("|", r"\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def write_section(name: str, body: str, path: Path = RESULTS) -> None:
    """Put a section's text between its markers, in place, or at the end when it is new.

    Parameters
    ----------
    name : str
        The section: letters, digits, hyphens.
    body : str
        Markdown. Writing the same body again leaves the file as it is.
    path : pathlib.Path
        The file; made when missing.

    Raises
    ------
    ValueError
        If the name has other characters, the body holds a marker, or the file has the section's
        begin without its end, or either twice.
    """
    if not re.fullmatch(r"[A-Za-z0-9-]+", name):
        raise ValueError(f"a section's name is letters, digits and hyphens, not {name!r}")
    if re.search(r"<!-- (begin|end):", body):
        raise ValueError(f"the body of section {name!r} holds a marker")
    begin, end = f"<!-- begin:{name} -->", f"<!-- end:{name} -->"
    text = path.read_text(encoding="utf-8") if path.exists() else _TITLE
    section = f"{begin}\n{body.strip()}\n{end}"
    counts = text.count(begin), text.count(end)
    if counts == (0, 0):
        text = f"{text.rstrip()}\n\n{section}\n"
    elif counts == (1, 1) and text.index(begin) < text.index(end):
        head, rest = text.split(begin)
        text = head + section + rest.split(end)[1]
    else:
        raise ValueError(f"{path} has {counts[0]} begins and {counts[1]} ends of section {name!r}")
    write_whole(text, path)


def write_whole(text: str, path: Path) -> None:
    """Put a text in the place of a file, which is never there in part."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)
