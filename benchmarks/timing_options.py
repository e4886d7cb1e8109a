"""The command-line options of benchmarks that time engines in turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def timing_options(command: F) -> F:
    """Add `threads` (a tuple), `rounds`, `min_time` and `write` to a command's parameters."""
    options = (
        click.option("--threads", multiple=True, type=click.IntRange(min=1), default=(1, 2)),
        click.option("--rounds", default=15, show_default=True),
        click.option(
            "--min-time", default=0.2, show_default=True, help="Seconds of a turn in a round."
        ),
        click.option("--write", is_flag=True, help="Update RESULTS.md."),
    )
    for option in reversed(options):
        command = option(command)
    return command
