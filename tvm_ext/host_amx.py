"""Whether this machine's CPU and operating system let a process use AMX."""

from __future__ import annotations

import ctypes
import functools
import platform
from pathlib import Path

# Linux's arch_prctl on x86-64, and what it is asked: which parts of the registers' state a process
# may ask for, and to be given one of them. The bit is that of AMX's tiles.
SYSCALL, SUPPORTED, REQUEST, TILE_DATA = 158, 0x1021, 0x1023, 18


@functools.cache
def host_has_amx() -> bool:
    """Whether AMX with bfloat16 products is in the CPU, and the system gives it to processes.

    Nothing changes by asking; kernels ask for the permission themselves.
    """
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return False
    return {"amx_tile", "amx_bf16"} <= _cpu_flags() and bool(_register_states() >> TILE_DATA & 1)


def _cpu_flags() -> set[str]:
    """What the system says that the CPU has; a virtual machine may hide some of it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return set()
    return next((set(x.split(":")[1].split()) for x in lines if x.startswith("flags")), set())


def _register_states() -> int:
    """The bits of the parts of the registers' state that a process may have; 0 if unknown."""
    states = ctypes.c_uint64(0)
    failed = ctypes.CDLL(None).syscall(SYSCALL, SUPPORTED, ctypes.byref(states))
    return 0 if failed else states.value
