"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from tvm_ext.errors import ArtifactError


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A temporary file that takes the place of `path` when all went well.

    Raises
    ------
    ArtifactError
        The file can't be written.
    """
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
