"""Which kind of device a target string means."""

from __future__ import annotations

import functools
from typing import Literal

Device = Literal["cpu", "gpu", "other"]
DEVICES: tuple[Device, ...] = ("cpu", "gpu", "other")

_CPU = ("llvm", "c")
_GPU = ("cuda", "rocm", "opencl", "metal", "vulkan", "webgpu", "nvptx")


@functools.lru_cache(maxsize=256)
def device_kind(target: str) -> Device:
    """The device of ``kind -option=value ...``.

    The kind decides. ``llvm`` and ``c`` are CPUs; ``cuda``, ``rocm``, ``opencl``, ``metal``,
    ``vulkan``, ``webgpu`` and ``nvptx`` are GPUs. All others, such as ``hexagon``, are ``other``,
    whatever their keys say.
    """
    kind, *_ = target.split() or [""]
    if kind in _CPU:
        return "cpu"
    return "gpu" if kind in _GPU else "other"
