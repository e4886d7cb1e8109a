"""What a user writes for a target -> the dict that TVM makes one from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm_ext.errors import TargetError


def target_config(target: str | Mapping[str, Any]) -> dict[str, Any]:
    """Read ``"native"``, an LLVM CPU's name, or ``"llvm -mtriple= -mcpu= -mattr="``.

    Raises
    ------
    TargetError
        A word is something else, or a kind of target that isn't a CPU.
    """
    if not isinstance(target, str):
        return dict(target)
    if target == "native":
        return {"kind": "llvm"}
    words = target.split()
    config: dict[str, Any] = {"kind": "llvm"}
    for i, word in enumerate(words):
        key, eq, value = word.lstrip("-").partition("=")
        if eq and key in ("mcpu", "mtriple", "mattr", "device"):
            config[key] = value.split(",") if key == "mattr" else value
        elif eq and key in ("num-cores", "opt-level"):
            config[key] = int(value)
        elif i == 0 and not word.startswith("-"):
            config.update({"kind": "llvm"} if word == "llvm" else {"mcpu": word})
            if word in ("cuda", "opencl", "vulkan", "metal", "rocm", "c", "hexagon", "webgpu"):
                raise TargetError(f"target kind {word!r} is not supported; allowed: llvm")
        else:
            raise TargetError(
                f"target {target!r}: can't read {word!r}; "
                "allowed: native, an mcpu name, or llvm -mtriple= -mcpu= -mattr="
            )
    return config
