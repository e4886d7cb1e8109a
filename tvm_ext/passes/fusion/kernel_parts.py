"""What one kernel is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.fusion.prologue import Prologue
from tvm_ext.schedules.epilogue import Epilogue
from tvm_ext.schedules.strided_view import StridedView


class NoKernel(Exception):
    """Why no single kernel computes a group."""


@dataclass(frozen=True)
class Source:
    """A value from outside the group, and how the kernel reads it."""

    expr: Any
    view: StridedView


@dataclass(frozen=True)
class KernelForm:
    """One kernel.

    Attributes
    ----------
    anchor : tuple of Var and Call, or None
        None when all of it is elementwise.
    inputs : tuple of Source
        The anchor's tensor arguments.
    epilogue : Epilogue
    operands : tuple of expressions
        What the epilogue's operands are, from outside the group; constants included.
    out : StridedView
        Where the element at each of the anchor's positions lies in the result; where these are
        shuffled channels, they are cut in (groups, channels of each).
    out_shape : tuple of int
    pool : Call or None
        A pool that the kernel computes from the steps' result.
    prologue : Prologue or None
        Steps that the kernel applies to its first input.
    producer : KernelForm or None
        What makes the anchor's first input, tile by tile as the kernel reads it.
    """

    anchor: tuple[Any, Any] | None
    inputs: tuple[Source, ...]
    epilogue: Epilogue
    operands: tuple[Any, ...]
    out: StridedView
    out_shape: tuple[int, ...]
    pool: Any = None
    prologue: Prologue | None = None
    producer: KernelForm | None = None

    @property
    def shuffle(self) -> int:
        """Groups of the channel shuffle in whose order the result is stored."""
        cut = self.anchor is not None and len(self.out.shape) > len(df.shape_of(self.anchor[0]))
        return self.out.shape[1] if cut else 1

    @property
    def chain_operands(self) -> tuple[Any, ...]:
        """The operands of all epilogues, the producer's first."""
        before = self.producer.chain_operands if self.producer else ()
        return (*before, *self.operands)
