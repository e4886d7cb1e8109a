"""Options that several commands share, and what they set."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import click

from tvm_ext import threads
from tvm_ext.build import TUNINGS
from tvm_ext.cli.errors import UserError
from tvm_ext.target import PRECISIONS

Shapes = tuple[tuple[str, tuple[int, ...]], ...]


class InputShape(click.ParamType):
    """``name:1,3,224,224``."""

    name = "NAME:D,D,..."

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, tuple[int, ...]]:
        name, _, dims = value.rpartition(":")
        try:
            shape = tuple(int(d) for d in dims.split(","))
        except ValueError:
            shape = ()
        if not name or not shape:
            self.fail(f"{value!r} is not like x:1,3,224,224", param, ctx)
        return name, shape


def build_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options of every command that may build a model: ``target`` and ``shapes``."""
    function = click.option(
        "--input-shape", "shapes", multiple=True, type=InputShape(),
        help="Shape of an input that the model leaves open; repeatable.",
    )(function)  # fmt: skip
    return click.option(
        "--target", default="native", show_default=True, help="native, or a CPU that LLVM knows."
    )(function)


fusion_option = click.option(
    "--fusion-database", type=click.Path(dir_okay=False), metavar="FILE",
    help="Measure where to fuse, and keep the answers in FILE.",
)  # fmt: skip
tuning_option = click.option(
    "--tuning", default="bank", show_default=True, type=click.Choice(TUNINGS),
    help="Use the bank's measured schedules where they are faster, or none.",
)  # fmt: skip
precision_option = click.option(
    "--precision", default="highest", show_default=True, type=click.Choice(PRECISIONS),
    help="high: float32 factors may be multiplied as sums of two bfloat16 terms (AMX).",
)  # fmt: skip
threads_option = click.option(
    "--threads", "count", type=click.IntRange(min=1), help="Threads; default: all cores."
)


def use_threads(count: int | None) -> None:
    """Obey ``--threads``, before the thread pool starts.

    Raises
    ------
    UserError
        The pool runs already, with fewer threads.
    """
    if count is None:
        return
    os.environ["TVM_NUM_THREADS"] = str(count)
    try:
        threads.use(count)
    except ValueError as error:
        raise UserError(str(error)) from error
