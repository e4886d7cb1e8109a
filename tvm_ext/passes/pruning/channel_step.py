"""What the rules that follow channels through operators read and write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tvm import relax

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.pruning.channel_ids import ChannelIds
from tvm_ext.passes.pruning.channel_labels import Axis, Joint, Labels
from tvm_ext.passes.pruning.prunable import Prunable

Result = Labels | tuple["Result", ...]


def each(result: Result) -> tuple[Labels, ...]:
    """The labels of a tensor, or of all in a tuple."""
    if isinstance(result, Labels):
        return (result,)
    return tuple(labels for part in result for labels in each(part))


@dataclass
class Channels:
    """The channels of a function as far as they were followed.

    Attributes
    ----------
    layers : Mapping of Var to Prunable
        By each variable that uses a layer's weights.
    notes : Mapping of str to str
        For layers that are to be left alone why, else an empty string.
    boxes : bool
        Whether channels at the same place of all groups of a shuffle are tied, so that what is left
        of it is a shuffle too.
    ids : ChannelIds
    values : dict of Var to Labels, or to a tuple of them
    constants : dict of (Var, int) to Labels
        Of the constant that is the given tensor among a call's tensors.
    filters, inputs : dict of str to Axis
        Of layers by name: the ids of their filters, and of what each filter reads.
    balanced : list of (str, ndarray)
        (groups, channels of one) of a layer in groups: each group keeps the same number.
    axes : list of ndarray
        Of all values, the ids of axes of which something has to be left.
    joints : list of Joint
        Of all values.
    """

    layers: Mapping[Any, Prunable]
    notes: Mapping[str, str]
    boxes: bool
    ids: ChannelIds = field(default_factory=ChannelIds)
    values: dict[Any, Result] = field(default_factory=dict)
    constants: dict[tuple[Any, int], Labels] = field(default_factory=dict)
    filters: dict[str, np.ndarray] = field(default_factory=dict)
    inputs: dict[str, Axis] = field(default_factory=dict)
    balanced: list[tuple[str, np.ndarray]] = field(default_factory=list)
    axes: list[np.ndarray] = field(default_factory=list)
    joints: list[Joint] = field(default_factory=list)

    def record(self, var: Any, result: Result) -> None:
        """Note what a value's channels are."""
        for labels in each(result):
            for lost in labels.lost:
                self.ids.fix(lost, f"{var.name} splits them over axes")
            known = [axis for axis in labels.axes if axis is not None]
            self.axes += known
            if labels.joint is not None:
                self._record_joint(labels.joint)
            for axis in known:
                if len(axis) == 1:
                    self.ids.fix(axis, f"{var.name} has no other channel")
        self.values[var] = result

    def _record_joint(self, joint: Joint) -> None:
        first = all(joint.base is not other.base for other in self.joints)
        self.joints.append(joint)
        if self.boxes and first:
            # Whole indices go of the longest axis; of groups and their channels it's the channels.
            shape = joint.positions.shape
            longest = max(range(len(shape)), key=lambda axis: (shape[axis], axis))
            table = np.moveaxis(joint.ids[joint.positions], longest, 0).reshape(shape[longest], -1)
            for column in table.T[1:]:
                self.ids.tie(table[:, 0], column)


@dataclass(frozen=True)
class Step:
    """A call while channels are followed through it."""

    channels: Channels
    var: Any
    call: relax.Call

    @property
    def name(self) -> str:
        """The operator and the variable, for reasons."""
        return f"{df.op_name(self.call).removeprefix('relax.')} {self.var.name}"

    def shape(self, position: int = 0) -> tuple[int, ...]:
        """The shape of the call's tensor number `position`."""
        return df.shape_of(df.tensors(self.call)[position])

    def result(self) -> Labels:
        """The channels of the call's result."""
        return self.channels.values[self.var]

    def labels(self, position: int = 0) -> Labels:
        """The channels of the call's tensor number `position`.

        Any index of a constant can go; it goes where what it is tied to does.
        """
        tensor = df.tensors(self.call)[position]
        if not isinstance(tensor, df.Constant):
            return self.channels.values[tensor]
        known = self.channels.constants
        if (self.var, position) not in known:
            fresh = self.channels.ids.fresh
            known[self.var, position] = Labels(
                tuple(fresh(n) if n > 1 else None for n in self.shape(position))
            )
        return known[self.var, position]

    def axes(self, position: int = 0) -> list[Axis]:
        """The same where channels that several axes share have to stay.

        An axis of one element has none that could go.
        """
        labels = self.labels(position)
        if labels.joint is not None:
            self.fix([labels.joint.ids], "reads them split over axes")
        return [
            None if n == 1 else a for a, n in zip(labels.axes, self.shape(position), strict=True)
        ]

    def fix(self, axes: Sequence[Axis], why: str) -> None:
        """Keep the channels of some axes because of this call."""
        for axis in axes:
            if axis is not None:
                self.channels.ids.fix(axis, f"{self.name} {why}")

    def merge(self, axes: Sequence[Axis]) -> Axis:
        """The channels of an axis of which several tensors have one: tied, or all fixed."""
        known = [axis for axis in axes if axis is not None]
        if len(known) < len(axes):
            self.fix(known, "combines them with channels that stay")
            return None
        for other in known[1:]:
            self.channels.ids.tie(known[0], other)
        return known[0] if known else None

    def only(self, axes: Sequence[Axis], passing: Sequence[int], why: str) -> tuple[Axis, ...]:
        """The axes that pass as they are, and None for the others, whose channels stay."""
        self.fix([axis for i, axis in enumerate(axes) if i not in passing], why)
        return tuple(axis if i in passing else None for i, axis in enumerate(axes))
