"""Index arithmetic of sliding windows whose borders are cut off instead of padded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm import tirx


@dataclass(frozen=True)
class Axis:
    """One spatial dimension: its extents and the window that slides over it."""

    size: int
    out: int
    kernel: int
    stride: int
    dilation: int
    before: int

    @property
    def reach(self) -> int:
        """Where the last window's last tap is; beyond `size` if it hangs over the end."""
        return (self.out - 1) * self.stride - self.before + self.dilation * (self.kernel - 1)

    @property
    def cut(self) -> bool:
        """Whether some window hangs over a border."""
        return self.before > 0 or self.reach >= self.size

    def taps(self, position: Any) -> tuple[Any, Any]:
        """First tap inside the input and the number of taps inside, for an output position."""
        origin = position * self.stride - self.before
        low: Any = 0
        high: Any = self.kernel
        if self.before:
            low = tirx.max(tirx.floordiv(self.dilation - 1 - origin, self.dilation), 0)
        if self.reach >= self.size:
            end = tirx.floordiv(self.size - origin + self.dilation - 1, self.dilation)
            high = tirx.min(end, self.kernel)
        return low, high - low

    def source(self, position: Any, tap: Any) -> Any:
        """The input position that a tap reads."""
        return position * self.stride - self.before + tap * self.dilation


def covers(
    spatial: Sequence[int], kernel: Sequence[int], pad_before: Sequence[int],
    pad_after: Sequence[int], dilation: Sequence[int], counted: bool,
) -> bool:  # fmt: skip
    """Whether the first window is of the whole input; `counted` says that padding isn't left out.

    A window that ends behind the padding isn't.
    """
    padded = any(pad_before) or any(pad_after)
    axes = zip(spatial, kernel, pad_before, pad_after, strict=True)
    whole = all(n + before <= k <= n + before + after for n, k, before, after in axes)
    return whole and all(d == 1 for d in dilation) and not (padded and counted)


def unflatten(row: Any, extents: Sequence[int]) -> list[Any]:
    """The position in `extents` of a flat number; nothing for no extents."""
    at: list[Any] = []
    for extent in reversed(extents[1:]):
        at.insert(0, row % extent)
        row = row // extent
    return [row, *at] if extents else at
