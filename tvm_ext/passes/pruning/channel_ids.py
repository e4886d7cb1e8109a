"""Channels as numbers: which of them can go together only, and which not at all.

Whoever removes a channel from one side of an addition has to remove its counterpart from the other.
Such channels are one set of a union-find structure.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np


class ChannelIds:
    """Sets of channels that are tied; an id is a channel, a set's root one of its ids."""

    def __init__(self) -> None:
        self._parent = np.empty(0, np.int64)
        self._reasons: dict[int, str] = {}

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
        while True:
            above = self._parent[found]
            if np.array_equal(above, found):
                return found
            found = above

    def tie(self, a: np.ndarray, b: np.ndarray) -> None:
        """Make each channel of `a` go with the one of `b` at the same place."""
        for left, right in self._apart(a, b):
            # Those before in the lists may have tied them already.
            ends = self.roots(np.array([left, right]))
            low, high = int(ends.min()), int(ends.max())
            if low == high:
                continue
            self._parent[high] = low
            if high in self._reasons:
                self._reasons.setdefault(low, self._reasons.pop(high))

    def fix(self, ids: np.ndarray, reason: str) -> None:
        """Keep channels, and all that are tied to them; the first reason is remembered."""
        for root in np.unique(self.roots(ids)):
            self._reasons.setdefault(int(root), reason)

    def reason(self, root: int) -> str:
        """Why the set with this root can't go, empty if it can."""
        return self._reasons.get(int(root), "")

    def _apart(self, a: np.ndarray, b: np.ndarray) -> Iterator[tuple[int, int]]:
        """The pairs of roots that aren't tied yet."""
        left, right = self.roots(a), self.roots(b)
        differ = left != right
        return zip(left[differ].tolist(), right[differ].tolist(), strict=True)
