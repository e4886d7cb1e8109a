"""The three units that work side by side, and the ring of token queues between them."""

from __future__ import annotations

from enum import IntEnum


class Unit(IntEnum):
    """A unit with its own instruction queue; it works in program order.

    The units form a ring, load -> compute -> store -> load, with a token queue in each direction
    between neighbours. So a unit's `previous` and `next` are the two others. The load/compute and
    compute/store queues are those of VTA (Moreau et al., "A Hardware-Software Blueprint for
    Flexible Deep Learning Specialization", 2018); the queues between store and load order a read
    behind the write that spilled the same bytes.
    """

    LOAD = 0
    COMPUTE = 1
    STORE = 2

    @property
    def label(self) -> str:
        """The name in assembly text."""
        return self.name.lower()

    @property
    def next(self) -> Unit:
        """The neighbour that `pop_next` and `push_next` mean."""
        return _RING[self + 1]

    @property
    def previous(self) -> Unit:
        """The neighbour that `pop_prev` and `push_prev` mean."""
        return _RING[self + 2]


_RING: tuple[Unit, ...] = (*Unit, Unit.LOAD, Unit.COMPUTE)
