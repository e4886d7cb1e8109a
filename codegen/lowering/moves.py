"""A `Reshape` that changes the order of bytes: trips through SRAM by DMA alone.

System memory has images pixel by pixel, a reshape keeps the logical order, channel by channel. One
trip brings the values into the logical order: it loads pixels and stores a run of pixels for each
channel. A second trip does the opposite for the new shape. Where one of the shapes is in the
logical order already, one trip is enough; where both are, it is a copy.
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm_ext.codegen.lowering.sram import Gaps, pack
from tvm_ext.codegen.lowering.stream import Copy, Stream
from tvm_ext.codegen.network_layers import Layer, Shape

ORDERED = ":ordered"
"""Suffix of the storage between two trips."""


@dataclass(frozen=True)
class Trip:
    """One copy of a whole tensor, `pixels` pixels at once.

    Attributes
    ----------
    image, ordered : str
        The storages that are pixel-major and in the logical order.
    channels, pixels : int
        Of the image.
    to_image : bool
        From the logical order to the image, or the other way.
    """

    image: str
    ordered: str
    channels: int
    pixels: int
    to_image: bool


@dataclass(frozen=True)
class Move:
    """A reshape between two dense storages in system memory.

    Attributes
    ----------
    layer : Layer
    source, target : str
        Storages.
    before, after : (channels, pixels)
        Their images; one channel: in the logical order already.
    """

    layer: Layer
    source: str
    target: str
    before: tuple[int, int]
    after: tuple[int, int]

    @property
    def extra(self) -> dict[str, int]:
        """Bytes of the storage between two trips, if there are two."""
        if self.before[0] == 1 or self.after[0] == 1:
            return {}
        return {self.target + ORDERED: self.before[0] * self.before[1]}

    @property
    def trips(self) -> list[Trip]:
        """The copies."""
        between = next(iter(self.extra), "")
        trips = []
        if self.before[0] > 1:
            trips.append(Trip(self.source, between or self.target, *self.before, to_image=False))
        if self.after[0] > 1 or not trips:
            trips.append(Trip(self.target, between or self.source, *self.after, to_image=True))
        return trips

    @property
    def pixel_bytes(self) -> int:
        """Bytes of the larger pixel, the least that a buffer holds."""
        return max(trip.channels for trip in self.trips)

    def chunk(self, gaps: Gaps, slots: int) -> tuple[int, list[int]] | None:
        """Bytes of a buffer, and the addresses of the buffers; None if a pixel doesn't fit."""
        size = max((end - begin for begin, end in gaps), default=0)
        while size >= self.pixel_bytes:
            if (addresses := pack([size] * slots, gaps)) is not None:
                return size, addresses
            size = size * 3 // 4
        return None

    def emit(
        self, stream: Stream, memory: dict[str, int], chunk: tuple[int, list[int]], tag: int
    ) -> None:
        """Append the copies."""
        (size, slots), turn = chunk, 0
        for trip in self.trips:
            step, channels = size // trip.channels, trip.channels
            for start in range(0, trip.pixels, step):
                count, sram = min(step, trip.pixels - start), slots[turn % len(slots)]
                turn += 1
                image = Copy(
                    memory[trip.image] + start * channels, sram, (1, 1, count * channels),
                    (0, 0), (0, 0),
                )  # fmt: skip
                ordered = Copy(
                    memory[trip.ordered] + start, sram, (channels, count, 1), (trip.pixels, 1),
                    (1, channels),
                )  # fmt: skip
                stream.read(ordered if trip.to_image else image, tag)
                stream.write(image if trip.to_image else ordered, tag)


def axes(shape: Shape) -> tuple[int, int]:
    """A tensor's channels and pixels; one in the logical order counts as one channel."""
    if len(shape) == 2 or shape[2] == shape[3] == 1:
        return 1, shape[0] * shape[1]
    return shape[1], shape[2] * shape[3]
