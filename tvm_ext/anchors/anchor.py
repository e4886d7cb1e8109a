"""What a reader of an anchor operator finds, and what the readers share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import relax

from tvm_ext.passes import dataflow as df

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Anchor:
    """What a reader found; `base` is the workload, without what is fused around it."""

    base: Any
    inputs: tuple[Any, ...]
    weights: tuple[np.ndarray, ...] = ()


# Takes the call and the shape of its result.
Reader = Callable[[relax.Call, Shape], Anchor | str]


def ints(values: Any) -> Shape:
    """An attribute of several numbers."""
    return tuple(int(v) for v in values)


def window(attrs: Any, dims: int) -> tuple[Shape, Shape, Shape, Shape]:
    """Strides, padding before and after, and dilation, of a window of `dims` dimensions."""
    padding = ints(attrs.padding)
    return ints(attrs.strides), padding[:dims], padding[dims:], ints(attrs.dilation)


def not_float32(*exprs: Any) -> str:
    """The reason against the first tensor of another dtype; an empty string without one."""
    for expr in exprs:
        if df.dtype_of(expr) != "float32":
            return f"dtype {df.dtype_of(expr)}; only float32 has a specialised kernel"
    return ""
