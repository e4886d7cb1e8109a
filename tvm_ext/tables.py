"""Plans and profiles as text tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from tvm_ext.plan import Plan

_WIDTH = 160
_LONGEST = 40


def render(table: Any, width: int = _WIDTH) -> str:
    """A rich renderable as plain text."""
    console = Console(width=width, record=False, force_terminal=False, no_color=True)
    with console.capture() as capture:
        console.print(table)
    return capture.get().rstrip()


def plan_table(plan: Plan) -> Table:
    """One row a layer, and the total; below it the notes."""
    table = Table(
        title=f"plan for {plan.target}", title_justify="left",
        caption=escape("\n".join(plan.notes)) if plan.notes else None, caption_justify="left",
    )  # fmt: skip
    for name in ("layer", "operators", "algorithm", "parameters", "layout"):
        table.add_column(name, overflow="fold")
    for name in ("GFLOP", "MB", "est. us"):
        table.add_column(name, justify="right")
    for layer in plan:
        note = f"[fallback: {layer.fallback}]" if layer.fallback else ""
        table.add_row(
            layer.name,
            " ".join(short_op(op) for op in layer.ops),
            layer.algorithm,
            format_params(layer.params) or note.replace("[", "\\["),
            "->".join(layer.layout) if layer.layout[0] != layer.layout[1] else layer.layout[0],
            f"{layer.gflop:.3f}",
            f"{layer.megabytes:.2f}",
            f"{layer.estimate_us:.0f}",
        )
    table.add_section()
    gflop, megabytes = (sum(getattr(x, k) for x in plan) for k in ("gflop", "megabytes"))
    table.add_row(
        "total", "", "", "", "", f"{gflop:.3f}", f"{megabytes:.2f}", f"{plan.estimate_us:.0f}"
    )
    return table


def format_params(params: Mapping[str, Any]) -> str:
    """``tile=6 blocks=2``; long values, traces of schedules, by their length."""
    return " ".join(f"{k}={_short(str(v))}" for k, v in params.items())


def _short(value: str) -> str:
    return value if len(value) <= _LONGEST else f"({len(value)} characters)"


def short_op(op: str) -> str:
    """An operator without its namespace: nn.conv2d -> conv2d."""
    return op.rsplit(".", 1)[-1]


def profile_table(profile: Any) -> Table:
    """One row a layer with its share of the time, and the total."""
    table = Table(title="profile", title_justify="left")
    for name in ("layer", "algorithm"):
        table.add_column(name, overflow="fold")
    for name in ("ms", "share", "GFLOP/s", "% of peak", "est. ms"):
        table.add_column(name, justify="right")
    total = profile.total_ms
    for row in profile.rows:
        table.add_row(
            row.name,
            row.algorithm,
            f"{row.ms:.3f}",
            f"{row.ms / total:.1%}",
            f"{row.gflops:.1f}",
            f"{row.peak_fraction:.0%}",
            f"{row.estimate_ms:.3f}",
        )
    table.add_section()
    table.add_row("total", "", f"{total:.3f}", "100.0%", "", "", "")
    return table
