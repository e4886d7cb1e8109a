"""Which CPU the code is for: its vector width, registers, caches, cores and measured peak."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import tvm
from tvm.target import Target

from tvm_ext.errors import OptionError, TargetError
from tvm_ext.host_amx import host_has_amx
from tvm_ext.host_caches import host_caches
from tvm_ext.target_text import target_config
from tvm_ext.threads import default_threads

# With "high", products may be of numbers rounded to 16 bits and more, as the names of
# `torch.set_float32_matmul_precision` say.
PRECISIONS = ("highest", "high")
# LLVM takes a tile's loop for one that waits for its loads, where the CPU's model has room for few
# operations in flight (Zen 4 and 5), and moves the loads of several steps ahead: they don't fit
# the registers, and the tile goes through memory at half of the peak.
_LLVM_OPTIONS = ("-misched-cyclicpath:bool=false",)
# Cycles a second assumed for a CPU that isn't the host, where nothing can be measured.
_NOMINAL_HZ = 3.0e9
# CPUs with vectors of 512 bits that go through units of 256 in two passes (AMD's optimization guide
# for family 19h models 10h and higher).
_TWO_PASSES = ("znver4",)
# Last-level cache over memory bandwidth, as one core sees them on desktop and server parts.
_SHARED_FACTOR = 2.5
# Memory bandwidth of several cores over that of one, as measured with two.
_TOGETHER = 1.5


@dataclass(frozen=True)
class CpuTarget:
    """A CPU as the planner and the schedules see it.

    Attributes
    ----------
    llvm : dict
        What TVM's `Target` is made from: kind, mtriple, mcpu, mattr.
    isa : str
        ``avx512``, ``avx2``, ``sse`` or ``neon``.
    lanes : int
        float32 values in a vector register.
    registers : int
        Vector registers that a kernel may use.
    cores : int
        Threads that the code is planned for.
    l1d, l2, l3 : int
        Cache sizes in bytes: of one core, and l3 of all.
    is_host : bool
        Whether this machine can run the code.
    amx : bool
        Whether the CPU has AMX's bfloat16 products; of the host, whether it gives them to us.
    precision : str
        ``"highest"``, or ``"high"`` where float32 factors may be multiplied as sums of bfloat16
        terms: only then is AMX used.
    """

    llvm: Mapping[str, Any] = field(hash=False)
    isa: str
    lanes: int
    registers: int
    cores: int
    l1d: int
    l2: int
    l3: int
    is_host: bool
    amx: bool = False
    precision: str = "highest"

    @property
    def tvm(self) -> Target:
        """The TVM target, with LLVM's options for our kernels."""
        options = [str(option) for option in self.llvm.get("cl-opt", ())]
        chosen = {option.partition("=")[0] for option in options}
        ours = [option for option in _LLVM_OPTIONS if option.partition("=")[0] not in chosen]
        return Target({**self.llvm, "cl-opt": [*options, *ours]})

    @property
    def name(self) -> str:
        """One line for people, and the key by which plans name their target."""
        high = "" if self.precision == "highest" else f", precision {self.precision}"
        return f"{self.llvm.get('mcpu', 'generic')} ({self.isa}, {self.cores} cores{high})"

    @property
    def unit_lanes(self) -> int:
        """float32 values that a unit computes or loads at once: a vector, or half of one."""
        halved = self.isa == "avx512" and self.llvm.get("mcpu") in _TWO_PASSES
        return self.lanes // 2 if halved else self.lanes

    @property
    def fma_peak(self) -> float:
        """Floating-point operations a second of one core: measured on the host, else nominal."""
        return _measured(self._plain)[0] if self.is_host else 4 * self.unit_lanes * _NOMINAL_HZ

    @property
    def memory_bandwidth(self) -> float:
        """Bytes a second that one core reads from beyond its caches."""
        return _measured(self._plain)[1] if self.is_host else 10e9

    @property
    def _plain(self) -> CpuTarget:
        """The same CPU, which is measured once whatever the precision."""
        return replace(self, precision="highest")

    def bandwidth(self, cores: int) -> float:
        """Bytes a second that `cores` read together from beyond their caches.

        Memory is shared: two cores draw about half as much again as one, and more of them little
        beyond that.
        """
        return self.memory_bandwidth * (_TOGETHER if cores > 1 else 1.0)

    @property
    def shared_bandwidth(self) -> float:
        """Bytes a second that one core reads from the last-level cache: a model, not measured."""
        return _SHARED_FACTOR * self.memory_bandwidth


def resolve(
    target: str | Mapping[str, Any] | CpuTarget = "native", precision: str | None = None
) -> CpuTarget:
    """Turn what a user writes into a `CpuTarget`.

    Parameters
    ----------
    target : str, Mapping or CpuTarget
        ``"native"``, an LLVM target string (``"llvm -mcpu=core-avx2"`` or just ``"core-avx2"``
        or ``"mcpu=core-avx2"``), or a dict as `tvm.target.Target` takes it.
    precision : str, optional
        One of `PRECISIONS`; default: that of a CpuTarget, else ``"highest"``.

    Raises
    ------
    TargetError
        The target is unknown or isn't an x86-64 or AArch64 CPU.
    OptionError
        The precision is something else.
    """
    if precision is not None and precision not in PRECISIONS:
        raise OptionError(f"precision={precision!r}; allowed: {', '.join(PRECISIONS)}")
    if isinstance(target, CpuTarget):
        if precision in (None, target.precision):
            return target
        runs = resolve(target.llvm, precision).is_host
        return replace(target, precision=precision, is_host=runs)
    config = target_config(target)
    if config.get("kind", "llvm") != "llvm":
        raise TargetError(f"target kind {config['kind']!r} is not supported; allowed: llvm")
    config["kind"] = "llvm"
    host_cpu = tvm.target.codegen.llvm_get_system_cpu()
    host_triple = tvm.target.codegen.llvm_get_system_triple()
    triple = config.get("mtriple", host_triple)
    arch = triple.split("-")[0]
    if arch not in ("x86_64", "aarch64", "arm64"):
        raise TargetError(
            f"target architecture {arch!r} is not supported; allowed: x86_64, aarch64"
        )
    if "mcpu" not in config and arch == "x86_64" and "mtriple" not in config:
        config["mcpu"] = host_cpu
        hidden = [] if host_has_amx() else _without_amx(config)
        if hidden:
            # LLVM goes by the CPU's model, which may have what the machine doesn't let through.
            config["mattr"] = [*config.get("mattr", ()), *hidden]
    mcpu = config.get("mcpu")
    known = _known_cpus(triple)
    if mcpu is not None and known and mcpu not in known:
        near = ", ".join(sorted(c for c in known if c[:3] == mcpu[:3])[:8]) or "see llc -mcpu=help"
        raise TargetError(f"unknown mcpu {mcpu!r} for {arch}; near it: {near}")
    try:
        features = cpu_features(config)
    except (ValueError, TypeError, RuntimeError) as error:
        raise TargetError(f"target {target!r}: {error}") from error
    isa, lanes, registers = _vector_unit(arch, features)
    # Kernels ask Linux for the unit.
    linux = arch == "x86_64" and "linux" in triple
    amx = linux and {"amx-tile", "amx-bf16"} <= features
    # LLVM doesn't use the unit by itself: code of the highest precision runs without it.
    used = amx and precision == "high"
    caches = host_caches()
    return CpuTarget(
        llvm=config,
        isa=isa,
        lanes=lanes,
        registers=registers,
        cores=default_threads(),
        **caches,
        is_host=arch == host_triple.split("-")[0]
        and isa in _runnable(host_cpu)
        and (not used or host_has_amx()),
        amx=amx,
        precision=precision or "highest",
    )


@functools.cache
def _known_cpus(triple: str) -> frozenset[str]:
    target = Target({"kind": "llvm", "mtriple": triple})
    return frozenset(str(cpu) for cpu in tvm.target.codegen.llvm_get_cpu_archlist(target))


def cpu_features(llvm: Mapping[str, Any]) -> set[str]:
    """LLVM's names of what a target's code may use, with what its ``mattr`` adds and takes away."""
    return {str(f) for f in tvm.target.codegen.llvm_get_cpu_features(Target(dict(llvm)))}


def _without_amx(config: Mapping[str, Any]) -> list[str]:
    """Attributes that switch off what a CPU has of AMX."""
    return sorted(f"-{f}" for f in cpu_features(config) if f.startswith("amx-"))


def _vector_unit(arch: str, on: set[str]) -> tuple[str, int, int]:
    if arch != "x86_64":
        return "neon", 4, 32
    if "avx512f" in on:
        return "avx512", 16, 32
    if "avx2" in on and "fma" in on:
        return "avx2", 8, 16
    return "sse", 4, 16


@functools.cache
def _runnable(host_cpu: str) -> tuple[str, ...]:
    host = {"kind": "llvm", "mcpu": host_cpu}
    arch = tvm.target.codegen.llvm_get_system_triple().split("-")[0]
    isa = _vector_unit(arch, cpu_features(host))[0]
    return {"avx512": ("avx512", "avx2", "sse"), "avx2": ("avx2", "sse")}.get(isa, (isa,))


@functools.cache
def _measured(target: CpuTarget) -> tuple[float, float]:
    from tvm_ext.schedules.peak import measure_fma_peak, measure_memory_bandwidth

    return measure_fma_peak(target), measure_memory_bandwidth(target)
