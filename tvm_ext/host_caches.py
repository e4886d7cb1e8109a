"""The sizes of this machine's caches, as Linux tells them."""

from __future__ import annotations

import functools
from pathlib import Path

_DEFAULTS = {"l1d": 32 << 10, "l2": 512 << 10, "l3": 8 << 20}


@functools.cache
def host_caches() -> dict[str, int]:
    """Bytes of the first-level data cache, the second and the third level; a common CPU's where
    the system doesn't say."""
    sizes = dict(_DEFAULTS)
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            level = (index / "level").read_text().strip()
            kind = (index / "type").read_text().strip()
            size = (index / "size").read_text().strip()
        except OSError:
            continue
        key = "l1d" if level == "1" and kind == "Data" else f"l{level}"
        if key in sizes and kind in ("Data", "Unified") and size.endswith("K"):
            sizes[key] = int(size[:-1]) << 10
    return sizes
