"""Which records to keep."""

from __future__ import annotations

from dataclasses import dataclass

from tvm_ext.errors import OptionError
from tvm_ext.transfer.record import Record
from tvm_ext.transfer.target_device import DEVICES


@dataclass(frozen=True)
class RecordFilter:
    """Keeps the records that fulfil every condition that is set.

    Attributes
    ----------
    target : str, optional
        Stands somewhere in the record's target.
    device : str, optional
        ``cpu``, ``gpu`` or ``other``.
    workload : str, optional
        Stands somewhere in the workload as `str` gives it: the hash or name, then the arguments.
    max_seconds : float, optional
        Limit of the median; failed records don't pass.
    valid : bool
        Failed records don't pass.

    Raises
    ------
    OptionError
        An unknown device, or a limit that isn't above 0.
    """

    target: str | None = None
    device: str | None = None
    workload: str | None = None
    max_seconds: float | None = None
    valid: bool = False

    def __post_init__(self) -> None:
        if self.device is not None and self.device not in DEVICES:
            raise OptionError(f"device {self.device!r}; allowed: {', '.join(DEVICES)}")
        if self.max_seconds is not None and not self.max_seconds > 0:
            raise OptionError(f"max_seconds {self.max_seconds!r}; allowed: above 0")

    def keeps(self, record: Record) -> bool:
        """Whether a record fulfils them."""
        return (
            (self.target is None or self.target in record.target)
            and (self.device is None or self.device == record.device)
            and (self.workload is None or self.workload in str(record.workload))
            and (
                self.max_seconds is None
                or (record.valid and record.median <= self.max_seconds)
            )
            and (record.valid or not self.valid)
        )  # fmt: skip
