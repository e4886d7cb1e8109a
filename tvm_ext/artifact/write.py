"""A compiled model into a file."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tvm_ext.artifact.compatibility import needed, versions
from tvm_ext.artifact.members import (
    CHUNK,
    CODE,
    CONSTANTS,
    FORMAT_VERSION,
    METADATA,
    PLAN,
    PROGRAM,
)
from tvm_ext.files import replacing
from tvm_ext.linking import check_linker

if TYPE_CHECKING:
    from tvm_ext.executable import Executable


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
                "features": sorted(needed(exe.plan, exe.target)),
                "members": members,
            }
            _write(file, METADATA, [json.dumps(head, indent=1).encode()])
    return path


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
        while chunk := stream.read(CHUNK):
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
