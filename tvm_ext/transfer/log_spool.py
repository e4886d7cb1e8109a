"""Lines put aside in a temporary file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from tvm_ext.errors import LogError


class LogSpool:
    """Takes lines and gives them back in any order.

    A pipe can be read only once, and a log may be larger than the memory.

    Parameters
    ----------
    file : binary file
        Empty, for reading and writing.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._end = 0

    def append(self, line: bytes) -> int:
        """Put a line at the end, with the newline that the last of a file may lack; its place.

        Raises
        ------
        LogError
            The disk is full.
        """
        line = line if line.endswith(b"\n") else line + b"\n"
        try:
            self._file.seek(self._end)
            self._file.write(line)
        except OSError as error:
            raise LogError(
                f"can't write a temporary file in {tempfile.gettempdir()}: "
                f"{error.strerror or error}"
            ) from error
        place = self._end
        self._end += len(line)
        return place

    def read(self, place: int) -> bytes:
        """The line that was put there."""
        self._file.seek(place)
        return self._file.readline()


@contextmanager
def log_spool() -> Iterator[LogSpool]:
    """A spool in a temporary file that is gone afterwards."""
    with tempfile.TemporaryFile() as file:
        yield LogSpool(file)
