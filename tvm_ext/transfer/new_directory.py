"""A directory that appears whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tvm_ext.errors import LogError


@contextmanager
def new_directory(path: Path) -> Iterator[Path]:
    """A temporary directory that becomes `path` when all went well.

    Raises
    ------
    LogError
        Something stands there that isn't an empty directory, or it can't be written.
    """
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        raise LogError(f"can't write {path}: it is there; allowed: a new or an empty directory")
    parent = path.absolute().parent
    try:
        temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=parent))
    except OSError as error:
        raise LogError(f"can't write {path}: {error.strerror or error}") from error
    try:
        yield temporary
        mask = os.umask(0o022)
        os.umask(mask)
        temporary.chmod(0o777 & ~mask)
        # Takes the place of an empty directory, and of nothing else.
        temporary.replace(path)
    except OSError as error:
        raise LogError(f"can't write {path}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
