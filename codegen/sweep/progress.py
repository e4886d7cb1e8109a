"""How far a sweep is, on stderr."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

Tell = Callable[[int, int, str], None]
"""Called with the number of points done, the number of all, and the label of the last one."""


@contextmanager
def sweep_progress(progress: bool | Tell) -> Iterator[Tell]:
    """What to tell of each point: the caller's own function; or a bar, where stderr is a terminal.

    Yields
    ------
    callable
        (points done, points in all, label of the last one) -> None.
    """
    if callable(progress):
        yield progress
        return
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    hidden = not progress or not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task("", total=None)

        def tell(done: int, total: int, what: str) -> None:
            bar.update(task, completed=done, total=total, description=what)

        yield tell
