"""A compiled model out of a file, checked byte by byte."""

from __future__ import annotations

import hashlib
import json
import os
import struct
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tvm

from tvm_ext.artifact.compatibility import check_versions, target_here
from tvm_ext.artifact.members import CHUNK, CODE, CONSTANTS, METADATA, PLAN, PROGRAM
from tvm_ext.errors import ArtifactError, PlanError
from tvm_ext.executable import Executable
from tvm_ext.plan import Plan
from tvm_ext.program import Program

_LOCAL_HEADER_BYTES = 30
# What the readers of zip, JSON and plans raise on bytes that nobody wrote on purpose.
_DAMAGE = (LookupError, TypeError, ValueError, RuntimeError, EOFError, struct.error, zlib.error)


def load(path: str | os.PathLike[str]) -> Executable:
    """Read a model that `Executable.save` wrote.

    The weights are mapped from the file and read at the first call.

    Raises
    ------
    ArtifactError
        The file can't be read, is truncated or damaged, was made by another version of the format
        or of TVM, or for another kind of CPU. The message names which.
    """
    path = Path(path)
    try:
        with zipfile.ZipFile(path) as file:
            head = _head(file, path)
            check_versions(head, path)
            target = target_here(head, path)
            for name, facts in head["members"].items():
                _verify(file, name, facts, path)
            plan = Plan.from_yaml(file.read(PLAN).decode())
            program = Program.from_json(json.loads(file.read(PROGRAM)))
            constants = _map_constants(path, file, program)
            code = _load_code(file, path)
    except OSError as error:
        raise ArtifactError(f"can't read {path}: {error.strerror or error}") from error
    except zipfile.BadZipFile as error:
        raise ArtifactError(
            f"{path} is truncated, damaged or not a saved model: {error}"
        ) from error
    except (*_DAMAGE, PlanError) as error:
        raise ArtifactError(f"{path} is damaged: {error}") from error
    return Executable(code, program, constants, plan, target)


def is_artifact(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a whole zip with our metadata."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as file:
        return METADATA in file.namelist() and CODE in file.namelist()


def _head(file: zipfile.ZipFile, path: Path) -> dict[str, Any]:
    try:
        head = json.loads(file.read(METADATA))
    except KeyError as error:
        raise ArtifactError(f"{path} is not a saved model: it has no {METADATA}") from error
    if not isinstance(head, dict) or "format" not in head:
        raise ArtifactError(f"{path} is not a saved model: {METADATA} names no format")
    return head


def _verify(file: zipfile.ZipFile, name: str, facts: Mapping[str, Any], path: Path) -> None:
    try:
        info = file.getinfo(name)
    except KeyError as error:
        raise ArtifactError(f"{path} is damaged: it has no {name}") from error
    if info.file_size != facts["bytes"]:
        raise ArtifactError(
            f"{path} is damaged: {name} has {info.file_size} bytes, not {facts['bytes']}"
        )
    digest = hashlib.sha256()
    with file.open(name) as member:
        while chunk := member.read(CHUNK):
            digest.update(chunk)
    if digest.hexdigest() != facts["sha256"]:
        raise ArtifactError(f"{path} is damaged: {name} has another SHA-256 than when it was saved")


def _map_constants(path: Path, file: zipfile.ZipFile, program: Program) -> dict[int, np.ndarray]:
    """The constants as views of the file, which is mapped, not read."""
    info = file.getinfo(CONSTANTS)
    if info.file_size != program.constant_bytes:
        raise ArtifactError(
            f"{path} is damaged: {CONSTANTS} has {info.file_size} bytes, "
            f"the program needs {program.constant_bytes}"
        )
    if not info.file_size:
        return {}
    with path.open("rb") as stream:
        stream.seek(info.header_offset)
        header = stream.read(_LOCAL_HEADER_BYTES)
    # The lengths of the name and of the extra field, after which the contents start.
    skip = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
    start = info.header_offset + _LOCAL_HEADER_BYTES + skip
    slab = np.memmap(path, "uint8", "r", start, (info.file_size,))
    constants = {}
    for number, buffer in enumerate(program.buffers):
        if buffer.kind == "constant" and buffer.parent is None:
            end = buffer.offset + buffer.nbytes
            raw = np.asarray(slab[buffer.offset : end])
            constants[number] = raw.view(buffer.dtype).reshape(buffer.shape)
    return constants


def _load_code(file: zipfile.ZipFile, path: Path) -> tvm.runtime.Module:
    """Load the shared library by way of a temporary file, gone when this returns.

    The loaded code stays mapped; Windows can't delete a loaded library, there it stays behind.
    """
    with tempfile.TemporaryDirectory(
        prefix="tvm_ext-", ignore_cleanup_errors=sys.platform == "win32"
    ) as folder:
        library = Path(folder, CODE)
        with file.open(CODE) as member, library.open("wb") as stream:
            while chunk := member.read(CHUNK):
                stream.write(chunk)
        return _load_library(library, path)


def _load_library(library: Path, path: Path) -> tvm.runtime.Module:
    """TVM's `load_module` with our error; `path` is the file to name in it."""
    try:
        return tvm.runtime.load_module(str(library))
    except (RuntimeError, ValueError) as error:
        reason = str(error).strip().splitlines()[-1]
        raise ArtifactError(f"the code in {path} can't be loaded: {reason}") from error
