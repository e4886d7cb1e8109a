"""Channels as numbers: which of them can go together only, and which not at all.

Whoever removes a channel from one side of an addition has to remove its counterpart from the other.
Such channels are one set of a union-find structure.
"""

from __future__ import annotations

import numpy as np


class ChannelIds:
    """Sets of channels that are tied; an id is a channel, a set's root the smallest of its ids."""

    def __init__(self) -> None:
        self._parent = np.empty(0, np.int64)
        self._fixed: list[tuple[np.ndarray, str]] = []

    def __len__(self) -> int:
        return len(self._parent)

    def fresh(self, count: int) -> np.ndarray:
        """New ids, int64 of shape (count,), tied to none."""
        ids = np.arange(len(self), len(self) + count)
        self._parent = np.concatenate([self._parent, ids])
        return ids

    def roots(self, ids: np.ndarray) -> np.ndarray:
        """The root of each id's set."""
        found = self._parent[ids]
        while not np.array_equal(above := self._parent[found], found):
            found = above
        self._parent[ids] = found
        return found

    def tie(self, a: np.ndarray, b: np.ndarray) -> None:
        """Make each channel of `a` go with the one of `b` at the same place."""
        while (differ := (left := self.roots(a)) != (right := self.roots(b))).any():
            left, right = left[differ], right[differ]
            # Of several pairs with the same larger root one counts now, the others next time.
            self._parent[np.maximum(left, right)] = np.minimum(left, right)

    def fix(self, ids: np.ndarray, reason: str) -> None:
        """Keep channels, and all that are tied to them then."""
        self._fixed.append((ids, reason))

    def reasons(self) -> dict[int, str]:
        """For the root of each set that can't go, the first reason that was given."""
        found: dict[int, str] = {}
        for ids, reason in self._fixed:
            for root in np.unique(self.roots(ids)).tolist():
                found.setdefault(root, reason)
        return found
