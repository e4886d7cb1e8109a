"""What a benchmark ran on."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

_ISA_FLAGS = (
    "avx2",
    "fma",
    "avx_vnni",
    "avx512f",
    "avx512bw",
    "avx512_vnni",
    "avx512_bf16",
    "amx_tile",
)
_PACKAGES = ("tvm_ext", "apache-tvm", "onnxruntime", "openvino", "onnx", "numpy")


def describe_machine() -> dict[str, Any]:
    """Describe the machine and the software.

    Returns
    -------
    dict
        ``cpu`` (model name), ``logical_cpus`` (those this process may use), ``isa`` (list of
        vector extensions), ``memory_gib``, ``system``, ``python``, ``versions`` (by package, those
        installed).
    """
    import psutil

    fields = _cpuinfo()
    flags = set(fields.get("flags", "").split())
    versions = {}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    affinity = getattr(os, "sched_getaffinity", None)
    return {
        "cpu": fields.get("model name") or platform.processor() or platform.machine(),
        "logical_cpus": len(affinity(0)) if affinity else os.cpu_count(),
        "isa": [flag for flag in _ISA_FLAGS if flag in flags],
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": versions,
    }


def _cpuinfo() -> dict[str, str]:
    """Return the first processor's fields from /proc/cpuinfo; empty where there is none."""
    path = Path("/proc/cpuinfo")
    if not path.exists():
        return {}
    first = path.read_text(encoding="utf-8").split("\n\n")[0]
    pairs = (line.split(":", 1) for line in first.splitlines() if ":" in line)
    return {key.strip(): value.strip() for key, value in pairs}
