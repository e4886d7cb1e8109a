"""A bar for each log that is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn

from tvm_ext.cli.progress import stderr_bar
from tvm_ext.transfer import log_lines


@contextmanager
def log_progress() -> Iterator[Callable[[str, int], None]]:
    """A bar a log on stderr, where that is a terminal; pipes have no size and no bar."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(),
               TimeRemainingColumn())  # fmt: skip
    with stderr_bar(*columns) as bar:
        tasks: dict[str, Any] = {}

        def tell(path: str, done: int) -> None:
            if path == log_lines.STDIN:
                return
            if path not in tasks:
                tasks[path] = bar.add_task(Path(path).name, total=Path(path).stat().st_size)
            bar.update(tasks[path], completed=done)

        yield tell
