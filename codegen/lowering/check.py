"""Whether an accelerator has room for a network: before its command stream is made."""

from __future__ import annotations

from collections.abc import Hashable

from tvm_ext.codegen.accelerator import ADDRESS_LIMIT, Accelerator
from tvm_ext.codegen.errors import LoweringError
from tvm_ext.codegen.lowering.candidates import smallest_bytes
from tvm_ext.codegen.lowering.footprint import Residency
from tvm_ext.codegen.lowering.nest import Nest
from tvm_ext.codegen.lowering.plan import extra_storages, move_too_large, steps_of, too_large
from tvm_ext.codegen.lowering.sram import aligned
from tvm_ext.codegen.lowering.views import place_tensors
from tvm_ext.codegen.network import Network


def bytes_alone(accelerator: Accelerator, nest: Nest) -> int:
    """SRAM that a layer's smallest tile takes, all of its tensors in system memory."""
    return smallest_bytes(accelerator, nest, Residency((False,) * len(nest.inputs)))


class RoomCheck:
    """Looks for the layer that doesn't fit; what is known of one layer serves others like it.

    A network all of whose layers fit alone can be lowered: where nothing else fits, every tensor is
    in system memory, and one layer runs after the other.

    Parameters
    ----------
    accelerator : Accelerator
    """

    def __init__(self, accelerator: Accelerator) -> None:
        self._accelerator = accelerator
        self._needed: dict[Hashable, int] = {}

    def check(self, network: Network) -> None:
        """Refuse a network that can't be lowered.

        Raises
        ------
        LoweringError
            The smallest tile of a layer doesn't fit the SRAM, the accelerator can't run a layer, or
            all tensors and constants together exceed the system memory's addresses.
        """
        accelerator = self._accelerator
        placement = place_tensors(network)
        steps = steps_of(network, placement, accelerator)
        for step in steps:
            if isinstance(step, Nest):
                if (needed := self._bytes(step)) > accelerator.sram_bytes:
                    raise too_large(step, needed, accelerator)
                continue
            slots = 2 if accelerator.double_buffering else 1
            if step.chunk(((0, accelerator.sram_bytes),), slots) is None:
                raise move_too_large(step, slots, accelerator)
        storages = (*placement.storages.values(), *extra_storages(steps).values())
        constants = sum(aligned(array.nbytes) for array in network.constants.values())
        total = constants + sum(map(aligned, storages))
        if total > ADDRESS_LIMIT:
            raise LoweringError(
                f"network {network.name}: {total} bytes of tensors and constants; allowed: "
                f"{ADDRESS_LIMIT}, what 32-bit addresses reach"
            )

    def _bytes(self, nest: Nest) -> int:
        if nest.signature not in self._needed:
            self._needed[nest.signature] = bytes_alone(self._accelerator, nest)
        return self._needed[nest.signature]
