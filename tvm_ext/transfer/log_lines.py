"""The lines of a log, one at a time: plain or gzip, a file, a pipe or the standard input."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import cast

from tvm_ext.errors import LogError, RecordError

STDIN = "-"
LINE_LIMIT = 16 << 20
"""Bytes in a line; no record comes near it, and what is longer isn't kept in memory."""
MODULE_LIMIT = 1 << 30
"""Bytes in a line that may hold a module with its constants."""

Progress = Callable[[str, int], None]
"""Told the path of a log and how many of its bytes have been read."""

_GZIP_MAGIC = b"\x1f\x8b"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LINES_A_REPORT = 256


class LogLines:
    """Numbered lines of a log, without comments and blank lines, in constant memory.

    A context manager; it iterates once.

    Parameters
    ----------
    path : str
        ``-`` is the standard input.
    progress : Progress, optional
    limit : int
        Bytes in a line.

    Raises
    ------
    LogError
        The file can't be opened or read.
    """

    def __init__(
        self, path: str, progress: Progress | None = None, limit: int = LINE_LIMIT
    ) -> None:
        self.path = path
        self._progress = progress
        self._limit = limit
        self._files = ExitStack()
        try:
            self._file = self._open()
            packed = self._file.peek(2)[:2] == _GZIP_MAGIC
        except OSError as error:
            self._files.close()
            raise LogError(f"can't read {path}: {error.strerror or error}") from error
        self._stream: io.BufferedIOBase = self._file
        if packed:
            self._stream = self._files.enter_context(gzip.GzipFile(fileobj=self._file))

    def _open(self) -> io.BufferedReader:
        if self.path == STDIN:
            reader: io.BufferedReader = io.BufferedReader(cast(io.RawIOBase, sys.stdin.buffer))
            # Not ours to close, as the reader would when nobody has it any more.
            self._files.callback(reader.detach)
            return reader
        return self._files.enter_context(open(self.path, "rb"))

    def __enter__(self) -> LogLines:
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()

    def __iter__(self) -> Iterator[tuple[int, bytes | RecordError]]:
        """Every line with its number, from 1, or what is wrong with it.

        A line longer than the limit, and the end of a gzip file that is cut off, are a
        `RecordError` in their place.
        """
        number = 0
        try:
            while line := self._stream.readline(self._limit):
                number += 1
                if number % _LINES_A_REPORT == 0:
                    self._report()
                if number == 1:
                    line = line.removeprefix(_BYTE_ORDER_MARK)
                if len(line) >= self._limit and not line.endswith(b"\n"):
                    yield number, self._too_long(line)
                elif (text := line.lstrip()) and not text.startswith(b"#"):
                    yield number, line
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            yield number + 1, RecordError("damaged gzip file", str(error))
        except OSError as error:
            raise LogError(
                f"can't read {self.path}, line {number + 1}: {error.strerror or error}"
            ) from error
        self._report()

    def _too_long(self, line: bytes) -> RecordError:
        """Read on to the end of the line."""
        size = len(line)
        while line and not line.endswith(b"\n"):
            line = self._stream.readline(1 << 16)
            size += len(line)
        return RecordError("line too long", f"{size} bytes; allowed: {self._limit}")

    def _report(self) -> None:
        if self._progress is not None and self._file.seekable():
            self._progress(self.path, self._file.tell())
