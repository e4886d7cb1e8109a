"""Whether code that was compiled elsewhere runs here: versions, architecture, instruction sets."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from tvm_ext.artifact.members import FORMAT_VERSION
from tvm_ext.errors import ArtifactError, TargetError
from tvm_ext.plan import Plan
from tvm_ext.schedules import algorithms
from tvm_ext.schedules.amx import FEATURES as AMX
from tvm_ext.target import CpuTarget, cpu_features, resolve

# Features of which LLVM makes instructions by itself; the rest tune or need intrinsics.
_ISA_PREFIXES = (
    *("sse", "ssse", "avx", "fma", "f16c", "bmi", "lzcnt", "popcnt", "movbe"),
    *("neon", "fp-armv8", "fullfp16", "dotprod", "sve", "bf16", "i8mm", "rdm", "lse"),
)


def versions() -> dict[str, str]:
    """Of the packages that the compiled code depends on."""
    return {name: metadata.version(name) for name in ("tvm_ext", "apache-tvm", "apache-tvm-ffi")}


def isa(llvm: Mapping[str, Any]) -> set[str]:
    """The instruction sets that code for a target may use."""
    return {feature for feature in cpu_features(llvm) if feature.startswith(_ISA_PREFIXES)}


def needed(plan: Plan, target: CpuTarget) -> set[str]:
    """The instruction sets that the code of a plan may use; AMX only where a kernel does."""
    known = algorithms()
    special = {
        feature
        for layer in plan
        if layer.algorithm in known
        for feature in known[layer.algorithm].features
    }
    return isa(target.llvm) | special


def check_versions(head: Mapping[str, Any], path: Path) -> None:
    """Compare the versions in a file's metadata with those here.

    Raises
    ------
    ArtifactError
        The format or TVM is of another version; names `path`.
    """
    if head["format"] != FORMAT_VERSION:
        raise ArtifactError(
            f"{path} has format version {head['format']!r}; allowed: {FORMAT_VERSION}; "
            "build the model again"
        )
    here = versions()
    for name in ("apache-tvm", "apache-tvm-ffi"):
        if head["versions"][name] != here[name]:
            raise ArtifactError(
                f"{path} was made with {name} {head['versions'][name]}; installed: {here[name]}; "
                "build the model again"
            )


def target_here(head: Mapping[str, Any], path: Path) -> CpuTarget:
    """The target that the model was built for, if this machine can run its code.

    Raises
    ------
    ArtifactError
        It can't; names `path` and what this CPU lacks.
    """
    saved = dict(head["target"])
    try:
        host = resolve("native")
        # Whether AMX is needed, the features say.
        target = CpuTarget(**{**saved, "is_host": resolve(saved["llvm"]).is_host})
    except TargetError as error:
        raise ArtifactError(f"{path} is for a target unknown here: {error}") from error
    here = isa(host.llvm) | (set(AMX) if host.amx else set())
    missing = sorted(set(head["features"]) - here)
    if not target.is_host or missing:
        lacking = f", which this CPU ({host.name}) lacks: {', '.join(missing)}" if missing else ""
        raise ArtifactError(f"{path} is for another kind of CPU, {target.name}{lacking}")
    return target
