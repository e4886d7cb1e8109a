"""How far a build is, on stderr."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

_STAGES = ("load", "graph passes", "plan", "lower", "compile")


@contextmanager
def stderr_bar(*columns: ProgressColumn) -> Iterator[Progress]:
    """A bar on stderr, gone when it is done, where that is a terminal; by default with the time."""
    console = Console(stderr=True)
    shown = columns or (
        SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    )  # fmt: skip
    with Progress(*shown, console=console, transient=True, disable=not console.is_terminal) as bar:
        yield bar


@contextmanager
def build_progress() -> Iterator[Callable[[str], None]]:
    """A bar that `tvm_ext.build` moves: a step a stage, and the layer it is at."""
    with stderr_bar() as bar:
        task = bar.add_task("", total=len(_STAGES))

        def tell(stage: str) -> None:
            if stage in _STAGES:
                bar.update(task, completed=_STAGES.index(stage), description=stage)
            else:
                bar.update(task, description=f"lower {stage}")

        yield tell
