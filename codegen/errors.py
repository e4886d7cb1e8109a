"""What can go wrong between a quantised network and the accelerator's result."""

from __future__ import annotations

from tvm_ext.errors import TvmExtError


class AcceleratorError(TvmExtError):
    """A hardware description is unknown, incomplete, or has a value that isn't allowed."""


class ProgramError(TvmExtError):
    """A program is truncated, corrupted, misspelled, or for another ISA version or variant."""


class NetworkError(TvmExtError):
    """A network description is inconsistent, not readable, or of a newer schema version."""


class LoweringError(TvmExtError):
    """A layer doesn't fit the accelerator: names the layer, the value and the limit."""


class QuantizationError(TvmExtError):
    """A model isn't quantised, or in a way that integer arithmetic can't follow."""


class SimulationError(TvmExtError):
    """A program did something that the machine doesn't allow.

    Parameters
    ----------
    reason : str
        What happened, with the values.
    pc : int
        The program counter: the instruction's place in the program, from 0.
    mnemonic : str
        The instruction at `pc`.
    """

    def __init__(self, reason: str, pc: int, mnemonic: str) -> None:
        self.reason, self.pc, self.mnemonic = reason, pc, mnemonic
        super().__init__(f"pc {pc} ({mnemonic}): {reason}")


class OperandError(SimulationError):
    """A field or register has a value that the instruction can't work with."""


class AddressError(SimulationError):
    """An operand leaves the SRAM or the system memory."""


class UnwrittenReadError(SimulationError):
    """Bytes are read that nothing has written before."""


class HazardError(SimulationError):
    """Two units touch the same bytes, one writes, and no token orders them."""


class DeadlockError(SimulationError):
    """Units wait for each other's tokens in a circle."""


class MissingTokenError(DeadlockError):
    """A unit waits for a token that no remaining instruction pushes."""


class CycleBudgetError(SimulationError):
    """The program needs more cycles than it was given."""
