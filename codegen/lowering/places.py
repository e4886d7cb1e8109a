"""Addresses and boxes in SRAM that a nest works with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tvm_ext.codegen.lowering.recipe import Registers


@dataclass(frozen=True)
class Buffers:
    """SRAM addresses of a nest's buffers; the fields are those of `Footprint`."""

    inputs: tuple[tuple[int, ...], ...]
    weights: tuple[int, ...]
    output: tuple[int, ...]
    partial: tuple[int, ...]


@dataclass(frozen=True)
class Addresses:
    """Where storages are.

    Attributes
    ----------
    sram, memory : Mapping of str to int
        By storage; in SRAM those that are there whole.
    """

    sram: Mapping[str, int]
    memory: Mapping[str, int]


@dataclass(frozen=True)
class Box:
    """An image tile in SRAM."""

    address: int
    row_pitch: int
    pixel_pitch: int

    def registers(self, name: str) -> Registers:
        """The pitch registers of an operand."""
        return {f"{name}_row_pitch": self.row_pitch, f"{name}_pixel_pitch": self.pixel_pitch}


class Slots:
    """Buffers that take turns; a tile that is still in one isn't loaded again."""

    def __init__(self, addresses: tuple[int, ...]) -> None:
        self._addresses, self._keys = addresses, [None] * len(addresses)
        self._next = 0

    def find(self, key: object) -> int | None:
        return self._addresses[self._keys.index(key)] if key in self._keys else None

    def take(self, key: object) -> int:
        place = self._next
        self._next = (place + 1) % len(self._addresses)
        self._keys[place] = key  # type: ignore[call-overload]
        return self._addresses[place]


def dense_box(columns: int, pixel_bytes: int) -> Callable[[int], Box]:
    return lambda address: Box(address, columns * pixel_bytes, pixel_bytes)


def repeated_box(address: int) -> Box:
    """One pixel that is read as every pixel of a tile."""
    return Box(address, 0, 0)
