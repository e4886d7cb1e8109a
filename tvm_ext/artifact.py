"""Compiled models as files: one uncompressed zip that any process with this package can load.

=================  ===========================================================================
member             contents
=================  ===========================================================================
``metadata.json``  format and package versions, target, CPU features, size and SHA-256 of the rest
``plan.yaml``      the plan
``program.json``   buffers and calls (`tvm_ext.program.Program`)
``code.so``        kernels and VM function as a shared library
``constants.bin``  the constants' slab, each constant at its planned offset
=================  ===========================================================================

Nothing is pickled. The code is as trusted as any shared library: load files from people you trust.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import tvm
from tvm.support import cc

from tvm_ext.errors import ArtifactError, PlanError, TargetError
from tvm_ext.executable import Executable
from tvm_ext.plan import Plan
from tvm_ext.program import Program
from tvm_ext.target import CpuTarget, resolve

FORMAT_VERSION = 1
METADATA, PLAN, PROGRAM, CODE, CONSTANTS = (
    "metadata.json",
    "plan.yaml",
    "program.json",
    "code.so",
    "constants.bin",
)
_CHUNK = 1 << 20
_LOCAL_HEADER_BYTES = 30
# What the readers of zip, JSON and plans raise on bytes that nobody wrote on purpose.
_DAMAGE = (LookupError, TypeError, ValueError, RuntimeError, EOFError, struct.error, zlib.error)
# Features of which LLVM makes instructions by itself; the rest tune or need intrinsics.
_ISA_PREFIXES = (
    *("sse", "ssse", "avx", "fma", "f16c", "bmi", "lzcnt", "popcnt", "movbe"),
    *("neon", "fp-armv8", "fullfp16", "dotprod", "sve", "bf16", "i8mm", "rdm", "lse"),
)


def save(exe: Executable, path: str | os.PathLike[str]) -> Path:
    """Write a compiled model as one file; a failure leaves what was there before.

    Parameters
    ----------
    exe : Executable
    path : path
        Customarily with the suffix ``.tvmx``. Its folder must exist.

    Returns
    -------
    Path
        `path`.

    Raises
    ------
    ArtifactError
        There is no C compiler to link with, it fails, the target isn't of this machine's
        architecture, or the file can't be written.
    """
    path = Path(path)
    check_linker(exe.target)
    with tempfile.TemporaryDirectory(prefix="tvm_ext-") as folder:
        library = Path(folder, CODE)
        exe.link(library)
        with replacing(path) as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as file:
            members = {
                PLAN: _write(file, PLAN, [exe.plan.to_yaml().encode()]),
                PROGRAM: _write(file, PROGRAM, [json.dumps(exe.program.to_json()).encode()]),
                CODE: _write(file, CODE, _chunks(library)),
                CONSTANTS: _write(file, CONSTANTS, _constants(exe)),
            }
            head = {
                "format": FORMAT_VERSION,
                "versions": versions(),
                "target": {**asdict(exe.target), "llvm": dict(exe.target.llvm)},
                "features": sorted(_isa(exe.target.llvm)),
                "members": members,
            }
            _write(file, METADATA, [json.dumps(head, indent=1).encode()])
    return path


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
            _check_versions(head, path)
            target = _target(head, path)
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


def versions() -> dict[str, str]:
    """Of the packages that the compiled code depends on."""
    return {name: metadata.version(name) for name in ("tvm_ext", "apache-tvm", "apache-tvm-ffi")}


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A temporary file that takes the place of `path` when all went well."""
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise ArtifactError(f"can't write {path}: {error.strerror or error}") from error
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except OSError as error:
        raise ArtifactError(f"can't write {path}: {error.strerror or error}") from error
    finally:
        Path(temporary).unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def _write(file: zipfile.ZipFile, name: str, chunks: Iterable[bytes]) -> dict[str, Any]:
    """Stream a member into the zip; its size and digest."""
    digest, size = hashlib.sha256(), 0
    # A fixed date: the same model gives the same bytes.
    with file.open(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), "w", force_zip64=True) as member:
        for chunk in chunks:
            member.write(chunk)
            digest.update(chunk)
            size += len(chunk)
    return {"bytes": size, "sha256": digest.hexdigest()}


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            yield chunk


def _constants(exe: Executable) -> Iterator[bytes]:
    """The constants' slab in order, with zeros in the gaps."""
    program, at = exe.program, 0
    places = [(program.buffers[number].offset, number) for number in exe.constants]
    for offset, number in sorted(places):
        array = exe.constants[number]
        yield bytes(offset - at)
        yield np.ascontiguousarray(array).tobytes()
        at = offset + array.nbytes
    yield bytes(program.constant_bytes - at)


def _head(file: zipfile.ZipFile, path: Path) -> dict[str, Any]:
    try:
        head = json.loads(file.read(METADATA))
    except KeyError as error:
        raise ArtifactError(f"{path} is not a saved model: it has no {METADATA}") from error
    if not isinstance(head, dict) or "format" not in head:
        raise ArtifactError(f"{path} is not a saved model: {METADATA} names no format")
    return head


def _check_versions(head: Mapping[str, Any], path: Path) -> None:
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


def _target(head: Mapping[str, Any], path: Path) -> CpuTarget:
    """The target that the model was built for, if this machine can run its code."""
    saved = dict(head["target"])
    try:
        host = resolve("native")
        target = CpuTarget(**{**saved, "is_host": resolve(saved["llvm"]).is_host})
    except TargetError as error:
        raise ArtifactError(f"{path} is for a target unknown here: {error}") from error
    missing = sorted(set(head["features"]) - _isa(host.llvm))
    if not target.is_host or missing:
        lacking = f", which this CPU ({host.name}) lacks: {', '.join(missing)}" if missing else ""
        raise ArtifactError(f"{path} is for another kind of CPU, {target.name}{lacking}")
    return target


def _isa(llvm: Mapping[str, Any]) -> set[str]:
    """The instruction sets that code for a target may use."""
    on = {str(f) for f in tvm.target.codegen.llvm_get_cpu_features(tvm.target.Target(dict(llvm)))}
    return {feature for feature in on if feature.startswith(_ISA_PREFIXES)}


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
        while chunk := member.read(_CHUNK):
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
            while chunk := member.read(_CHUNK):
                stream.write(chunk)
        return _load_library(library, path)


def _load_library(library: Path, path: Path) -> tvm.runtime.Module:
    """TVM's `load_module` with our error; `path` is the file to name in it."""
    try:
        return tvm.runtime.load_module(str(library))
    except (RuntimeError, ValueError) as error:
        reason = str(error).strip().splitlines()[-1]
        raise ArtifactError(f"the code in {path} can't be loaded: {reason}") from error
