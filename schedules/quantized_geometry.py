"""How an int8 convolution is seen by its kernel: positions, words of channels, what is staged."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd, prod

from tvm_ext.schedules.dot_product import DotProduct
from tvm_ext.schedules.quantized_workload import QuantizedConvWorkload
from tvm_ext.schedules.workload import Shape

# Words that the inner loop unrolls at most.
_MOST_WORDS = 4


@dataclass(frozen=True)
class QuantizedGeometry:
    """A convolution without groups as loops over words.

    Without a neighbourhood (1x1, stride 1, no padding) all positions are one row (`flat`).

    Attributes
    ----------
    spatial, out, kernel, stride, dilation, before : (rows, columns)
    padded : bool
    words : int
        Words of all input channels at one position.
    lane_words : int
        Neighbouring words of one position in memory.
    step : int
        Words that the inner loop unrolls, whatever the block: packed weights have this order.
    """

    spatial: Shape
    out: Shape
    kernel: Shape
    stride: Shape
    dilation: Shape
    before: Shape
    padded: bool
    flat: bool
    words: int
    lane_words: int
    step: int

    @staticmethod
    def of(
        w: QuantizedConvWorkload, dot: DotProduct, lanes: int, block: int = 0
    ) -> QuantizedGeometry:
        """Of an input in channel blocks of `block` (0: plain); `lanes` int32 are a vector."""
        padded = any(w.pad_before) or any(w.pad_after)
        flat = prod(w.kernel) * prod(w.strides) == 1 and not padded
        spatial, out = w.spatial, w.out_spatial
        if flat:
            spatial = out = (1, prod(out))
        words = dot.words(w.in_channels)
        return QuantizedGeometry(
            spatial, out, w.kernel, w.strides, w.dilation, w.pad_before, padded, flat, words,
            max(1, block // dot.group), gcd(words, max(1, lanes // dot.group), _MOST_WORDS),
        )  # fmt: skip

    @property
    def extent(self) -> int:
        """What a chunk counts: positions of a flat convolution, else rows."""
        return self.out[1] if self.flat else self.out[0]

    def rows(self, count: int) -> int:
        """Input rows that `count` output rows read."""
        return (count - 1) * self.stride[0] + self.dilation[0] * (self.kernel[0] - 1) + 1

    @property
    def columns(self) -> int:
        """Input columns, with their padding, that a row of the output reads."""
        return (self.out[1] - 1) * self.stride[1] + self.dilation[1] * (self.kernel[1] - 1) + 1
