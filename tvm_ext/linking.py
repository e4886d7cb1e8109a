"""From compiled kernels to a shared library."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import tvm
from tvm.support import cc

from tvm_ext.errors import ArtifactError
from tvm_ext.target import CpuTarget


def check_linker(target: CpuTarget) -> None:
    """Refuse to start where the shared library couldn't be linked.

    Raises
    ------
    ArtifactError
        No C compiler, or the target is of another architecture than this machine.
    """
    host = str(tvm.target.codegen.llvm_get_system_triple()).split("-")[0]
    wanted = str(target.llvm.get("mtriple", host)).split("-")[0]
    if wanted != host:
        raise ArtifactError(f"can't link for {wanted} on this machine; allowed: {host}")
    if cc.get_cc() is None:
        raise ArtifactError(
            "saving a model needs a C compiler for linking, and none was found; "
            "install gcc or clang, or set the environment variable CC"
        )


def link(executable: Any, path: str | os.PathLike[str]) -> None:
    """Link in a temporary folder beside `path`, so that a failure leaves no partial file.

    Parameters
    ----------
    executable : relax.VMExecutable
    path : path

    Raises
    ------
    ArtifactError
        Linking fails, or the file can't be written.
    """
    path = Path(path)
    try:
        with tempfile.TemporaryDirectory(prefix=".tvm_ext-", dir=path.parent) as folder:
            made = Path(folder, "code.so")
            executable.export_library(str(made))
            os.replace(made, path)
    except (OSError, RuntimeError) as error:
        raise ArtifactError(f"can't link {path}: {error}") from error
