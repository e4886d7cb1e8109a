"""The Python blocks of a Markdown file."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def python_blocks(name: str) -> list[str]:
    """The blocks in order, on the lines that they have in the file: errors point there."""
    text = (ROOT / name).read_text(encoding="utf-8")
    found = re.finditer(r"^```python\n(.*?)^```$", text, re.M | re.S)
    return ["\n" * text[: match.start(1)].count("\n") + match[1] for match in found]
