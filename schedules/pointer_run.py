"""Loops whose bounds are data: the run of entries that a pointer array gives an index."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from tvm import tirx
from tvm.script.ir_builder import tirx as T


@contextlib.contextmanager
def pointer_run(pointers: Any, index: Any) -> Iterator[Any]:
    """A loop over [pointers[index], pointers[index + 1]).

    It counts from 0: TVM takes the first value of a loop that isn't a number for 0. The entries'
    numbers have 64 bits, so that addresses need no conversion in the loop.
    """
    first = T.Bind(tirx.Cast("int64", pointers[index]))
    with T.serial(tirx.const(0, "int64"), tirx.Cast("int64", pointers[index + 1]) - first) as i:
        yield first + i
