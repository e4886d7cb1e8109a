"""How far a training run is, on stderr."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


@contextmanager
def training_progress(epochs: int, shown: bool) -> Iterator[Callable[[int, str], None]]:
    """A bar of epochs.

    Parameters
    ----------
    epochs : int
        Of all stages.
    shown : bool
        Without it, and where stderr isn't a terminal, there is no bar.

    Yields
    ------
    callable
        (epochs done, what is being done) -> None.
    """
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    hidden = not shown or not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task("", total=epochs)

        def tell(done: int, what: str) -> None:
            bar.update(task, completed=done, description=what)

        yield tell
