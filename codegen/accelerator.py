"""The hardware description: one variant of the accelerator, as data."""

from __future__ import annotations

import math
import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import yaml

from tvm_ext.codegen.errors import AcceleratorError
from tvm_ext.errors import ArtifactError
from tvm_ext.files import replacing

PARALLEL = ("output", "input")
DEPTHWISE = ("none", "software", "hardware")
ADDRESS_LIMIT = 2**32
"""Bytes that an instruction's 32-bit addresses reach."""


@dataclass(frozen=True)
class Accelerator:
    """One variant of the accelerator.

    Attributes
    ----------
    name : str
        What error messages and plots call it.
    pes : int
        Processing elements: int8 multiply-accumulators, and as many lanes for everything else.
    sram_bytes : int
        The accelerator's own memory, for weights and activations.
    parallel : str
        ``"output"``: the PEs work on as many output channels at once, one product a cycle each.
        ``"input"``: they work on as many input channels of one output, summed by an adder tree.
    depthwise : str
        ``"hardware"``: OP_DEPTH_CONV exists. ``"software"``: depthwise layers become one OP_CONV a
        channel. ``"none"``: they stay on the CPU.
    pixel_parallel : int
        Into how many groups the PEs are split, each for another output pixel. Divides `pes`.
    double_buffering : bool
        Whether programs are to overlap load, compute and store.
    dma_bytes_per_cycle : int
        Width of the bus to system memory, which reads and writes share.
    dma_latency_cycles : int
        From a DMA's start to its first byte.
    fill_cycles : int
        Pipeline fill of each arithmetic instruction.
    clock_hz : float
        Cycles a second.
    energy_per_mac_pj, energy_per_sram_byte_pj, energy_per_dram_byte_pj : float
        Picojoules. The defaults are in the range that Horowitz gives for 45 nm ("Computing's
        Energy Problem", ISSCC 2014): an 8-bit product and a 32-bit sum; a megabyte of SRAM; DRAM.

    Raises
    ------
    AcceleratorError
        At construction: a value isn't allowed.
    """

    name: str = "generic"
    pes: int = 64
    sram_bytes: int = 512 * 1024
    parallel: str = "output"
    depthwise: str = "hardware"
    pixel_parallel: int = 1
    double_buffering: bool = True
    dma_bytes_per_cycle: int = 16
    dma_latency_cycles: int = 64
    fill_cycles: int = 8
    clock_hz: float = 500e6
    energy_per_mac_pj: float = 0.3
    energy_per_sram_byte_pj: float = 6.0
    energy_per_dram_byte_pj: float = 160.0

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name or not self.name.isprintable():
            self._refuse("name", "a printable text")
        for option, low, high in (
            ("pes", 1, 2**16), ("sram_bytes", 1, ADDRESS_LIMIT), ("pixel_parallel", 1, 2**16),
            ("dma_bytes_per_cycle", 1, 2**16), ("dma_latency_cycles", 0, 2**20),
            ("fill_cycles", 0, 2**20),
        ):  # fmt: skip
            value = getattr(self, option)
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                self._refuse(option, f"a whole number from {low} to {high}")
        for option, allowed in (("parallel", PARALLEL), ("depthwise", DEPTHWISE)):
            if getattr(self, option) not in allowed:
                self._refuse(option, ", ".join(allowed))
        if not isinstance(self.double_buffering, bool):
            self._refuse("double_buffering", "true, false")
        if self.pes % self.pixel_parallel:
            self._refuse("pixel_parallel", f"a divisor of pes={self.pes}")
        for option in ("energy_per_mac_pj", "energy_per_sram_byte_pj", "energy_per_dram_byte_pj"):
            if not _is_finite(getattr(self, option)) or getattr(self, option) < 0:
                self._refuse(option, "a finite number from 0")
        if not _is_finite(self.clock_hz) or self.clock_hz <= 0:
            self._refuse("clock_hz", "a finite number above 0")

    @property
    def lanes(self) -> int:
        """PEs of one group: the channels that are worked on at once."""
        return self.pes // self.pixel_parallel

    @property
    def variant(self) -> str:
        """What a program depends on, in one line; programs of another variant are refused."""
        return (
            f"{self.name}: pes={self.pes} sram_bytes={self.sram_bytes} parallel={self.parallel} "
            f"depthwise={self.depthwise} pixel_parallel={self.pixel_parallel}"
        )

    def to_yaml(self) -> str:
        """The description as YAML; `from_yaml` gives an equal one back."""
        return yaml.safe_dump(asdict(self), sort_keys=False)

    @classmethod
    def from_yaml(cls, text: str) -> Accelerator:
        """Read a description; what isn't named has its default.

        Raises
        ------
        AcceleratorError
            Not a mapping in YAML, an unknown key, or a value that isn't allowed.
        """
        try:
            data: Any = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise AcceleratorError(f"the hardware description is not YAML: {error}") from error
        if not isinstance(data, dict):
            raise AcceleratorError(f"the hardware description is a mapping, not {data!r}")
        known = [field.name for field in fields(cls)]
        if unknown := sorted(str(key) for key in data if key not in known):
            raise AcceleratorError(
                f"the hardware description has unknown keys {unknown}; allowed: {', '.join(known)}"
            )
        return cls(**data)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the YAML; a failure leaves no partial file.

        Raises
        ------
        AcceleratorError
            The file can't be written.
        """
        try:
            with replacing(Path(path)) as stream:
                stream.write(self.to_yaml().encode())
        except ArtifactError as error:
            raise AcceleratorError(str(error)) from error

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Accelerator:
        """Read a description from a YAML file."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise AcceleratorError(
                f"can't read the hardware description {path}: {error}"
            ) from error
        return cls.from_yaml(text)

    def _refuse(self, option: str, allowed: str) -> None:
        raise AcceleratorError(
            f"accelerator {self.name!r}: {option} is {getattr(self, option)!r}; allowed: {allowed}"
        )


def _is_finite(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
