"""Rows of the table of transfer tuning, kept in a file, which grows over runs of hours."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.results import write_whole


@dataclass(frozen=True)
class Spent:
    """What a way of tuning took.

    Attributes
    ----------
    seconds : float
        Wall time, builds and the comparison of whole models included.
    candidates : int
        Measured.
    curve : list of (float, float)
        Seconds since the start, and the estimate of the model's latency in ms by then.
    """

    seconds: float
    candidates: int
    curve: list[tuple[float, float]] = field(repr=False)

    @staticmethod
    def read(path: Path) -> Spent:
        """What `write` wrote."""
        return Spent.of(json.loads(path.read_text()))

    @staticmethod
    def of(kept: dict[str, Any]) -> Spent:
        """From the fields, as JSON has them."""
        return Spent(kept["seconds"], kept["candidates"], [(a, b) for a, b in kept["curve"]])

    def write(self, path: Path) -> None:
        """As JSON."""
        path.write_text(json.dumps(asdict(self)))

    def steps(self) -> Spent:
        """The same with the curve's steps alone, and its end."""
        kept = [
            point
            for i, point in enumerate(self.curve)
            if i in (0, len(self.curve) - 1) or point[1] != self.curve[i - 1][1]
        ]
        return replace(self, curve=kept)


@dataclass(frozen=True)
class Row:
    """A model from one starting point.

    Attributes
    ----------
    model, donor, start : str
    ways : dict of str to Spent
        ``"search"``, ``"transfer"``, ``"unmeasured"``.
    ms : dict of str to float
        Median latency, ``"start"`` and each way.
    ratios : dict of str to float
        Speed-up over the start: medians of the rounds' ratios.
    search_s, transfer_s : float
        Seconds in which the two might measure.
    machine : str
        With its instruction sets and the threads that ran.
    """

    model: str
    donor: str
    start: str
    ways: dict[str, Spent]
    ms: dict[str, float]
    ratios: dict[str, float]
    search_s: float
    transfer_s: float
    machine: str

    def share(self, way: str) -> float:
        """Of the search's speed-up, what a way reaches."""
        return self.ratios[way] / self.ratios["search"]

    def time_share(self) -> float:
        """Seconds that transfer takes by those of the search."""
        return self.ways["transfer"].seconds / self.ways["search"].seconds

    def time_to_match(self) -> float:
        """Seconds until the search's estimate is as low as transfer's last, by transfer's seconds.

        Infinite if it never is.
        """
        reached = self.ways["transfer"].curve[-1][1]
        for seconds, ms in self.ways["search"].curve:
            if ms <= reached:
                return seconds / self.ways["transfer"].seconds
        return float("inf")


def read_rows(path: Path) -> list[Row]:
    """The rows of a file; none if there is no file."""
    if not path.exists():
        return []
    return [
        Row(**{**kept, "ways": {k: Spent.of(v) for k, v in kept["ways"].items()}})
        for kept in json.loads(path.read_text(encoding="utf-8"))
    ]


def keep_row(row: Row, path: Path) -> list[Row]:
    """Write a row in the place of an older one of the same model, donor and start, or behind.

    Returns
    -------
    list of Row
        All rows of the file.
    """
    row = replace(row, ways={k: v.steps() for k, v in row.ways.items()})
    rows = {_key(r): r for r in read_rows(path)}
    rows[_key(row)] = row
    # A line a row, as the file is under version control.
    lines = ",\n".join(json.dumps(asdict(r)) for r in rows.values())
    write_whole(f"[\n{lines}\n]\n", path)
    return list(rows.values())


def machines(rows: Sequence[Row]) -> dict[str, str]:
    """A letter for each machine with its budgets, in the order in which they appear."""
    letters: dict[str, str] = {}
    for row in rows:
        letters.setdefault(conditions(row), chr(ord("A") + len(letters)))
    return letters


def conditions(row: Row) -> str:
    """The machine and the budgets of a row."""
    return f"{row.machine}; search {row.search_s:.0f} s, transfer {row.transfer_s:.0f} s"


def _key(row: Row) -> tuple[str, str, str]:
    return row.model, row.donor, row.start
