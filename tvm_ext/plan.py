"""The plan: every decision about a model as plain data that prints, round-trips and is editable."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import yaml

from tvm_ext.errors import PlanError
from tvm_ext.files import replacing
from tvm_ext.target import PRECISIONS

SCHEMA_VERSION = 1
SOURCES = ("default", "bank", "transfer", "tuned", "user")
DEVICES = ("cpu", "accelerator")
STORAGES = ("dense", "csr", "fkw", "block")


@dataclass
class LayerPlan:
    """How one layer is computed.

    Attributes
    ----------
    name : str
        The layer's name in the model, unique.
    ops : list of str
        The operators of its fusion group, in order.
    algorithm : str
        A registered algorithm.
    params : dict
        Its parameters; their legal values are the algorithm's `space`.
    layout : list of str
        Input and output layout, such as ``[NCHW, NCHW8c]``.
    storage : str
        How the weights are stored: dense, csr, fkw, block.
    device : str
        cpu or accelerator.
    source : str
        Where the choice comes from: default, bank, transfer, tuned, user.
    estimate_us : float
        The cost model's time in microseconds, on all of the target's cores.
    gflop : float
        10**9 floating-point operations of the layer.
    megabytes : float
        10**6 bytes that it must move at least.
    tolerance : float
        Largest relative error against exact arithmetic that the algorithm may show.
    rejected : dict
        For each other algorithm, why it lost.
    fallback : str
        Not empty when no kernel of ours takes the layer: the reason.
    """

    name: str
    ops: list[str]
    algorithm: str
    params: dict[str, Any] = field(default_factory=dict)
    layout: list[str] = field(default_factory=lambda: ["plain", "plain"])
    storage: str = "dense"
    device: str = "cpu"
    source: str = "default"
    estimate_us: float = 0.0
    gflop: float = 0.0
    megabytes: float = 0.0
    tolerance: float = 1e-4
    rejected: dict[str, str] = field(default_factory=dict)
    fallback: str = ""

    def __post_init__(self) -> None:
        for option, allowed in (("source", SOURCES), ("device", DEVICES), ("storage", STORAGES)):
            value = getattr(self, option)
            if value not in allowed:
                raise PlanError(
                    f"layer {self.name}: {option} {value!r}; allowed: {', '.join(allowed)}"
                )
        for option, kind, allowed_kind in (
            ("ops", list, "a list"), ("params", dict, "a mapping"), ("rejected", dict, "a mapping"),
        ):  # fmt: skip
            value = getattr(self, option)
            if not isinstance(value, kind):
                raise PlanError(f"layer {self.name}: {option} {value!r}; allowed: {allowed_kind}")
        if not isinstance(self.layout, list) or len(self.layout) != 2:
            raise PlanError(f"layer {self.name}: layout {self.layout!r}; allowed: [input, output]")


@dataclass
class Plan:
    """The layer plans of a model for one target, in execution order.

    Attributes
    ----------
    target : str
    layers : list of LayerPlan
    notes : list of str
        What concerns no single layer, such as operators that an accelerator leaves to the CPU, and
        why. `build` doesn't read them.
    precision : str
        ``"high"`` allows layers to multiply sums of bfloat16 terms; ``"highest"`` doesn't.
    """

    target: str
    layers: list[LayerPlan]
    version: int = SCHEMA_VERSION
    notes: list[str] = field(default_factory=list)
    precision: str = "highest"

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            raise PlanError(
                f"the plan's precision is {self.precision!r}; allowed: {', '.join(PRECISIONS)}"
            )

    def __iter__(self) -> Iterator[LayerPlan]:
        return iter(self.layers)

    def __len__(self) -> int:
        return len(self.layers)

    def __getitem__(self, name: str) -> LayerPlan:
        for layer in self.layers:
            if layer.name == name:
                return layer
        raise PlanError(f"the plan has no layer {name!r}; it has {[x.name for x in self.layers]}")

    @property
    def estimate_us(self) -> float:
        """Sum of the layers' estimates in microseconds."""
        return sum(layer.estimate_us for layer in self.layers)

    def to_yaml(self) -> str:
        """The plan as YAML; `from_yaml` gives an equal plan back."""
        data: dict[str, Any] = {
            "version": self.version, "target": self.target, "precision": self.precision,
        }  # fmt: skip
        if self.notes:
            data["notes"] = self.notes
        data["layers"] = [asdict(layer) for layer in self.layers]
        return yaml.safe_dump(data, sort_keys=False, width=100)

    @classmethod
    def from_yaml(cls, text: str) -> Plan:
        """Read a plan.

        Raises
        ------
        PlanError
            The text isn't a plan, is of another schema version, or has an unknown field.
        """
        try:
            data = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise PlanError(f"the plan is not YAML: {error}") from error
        if not isinstance(data, dict) or not {"version", "target", "layers"} <= set(data):
            raise PlanError("the plan needs the keys version, target and layers")
        if data["version"] != SCHEMA_VERSION:
            raise PlanError(f"plan version {data['version']!r}; allowed: {SCHEMA_VERSION}")
        if extra := set(data) - {"version", "target", "precision", "notes", "layers"}:
            raise PlanError(
                f"the plan has unknown keys {sorted(map(str, extra))}; "
                "allowed: version, target, precision, notes, layers"
            )
        notes = data.get("notes", [])
        if not isinstance(notes, list) or not all(isinstance(note, str) for note in notes):
            raise PlanError(f"the plan's notes are a list of texts, not {notes!r}")
        if not isinstance(data["layers"], list):
            raise PlanError(f"the plan's layers is a list, not {data['layers']!r}")
        known = {f.name for f in fields(LayerPlan)}
        layers = []
        for i, entry in enumerate(data["layers"]):
            if not isinstance(entry, dict) or not {"name", "ops", "algorithm"} <= set(entry):
                raise PlanError(f"layer {i} of the plan needs the keys name, ops and algorithm")
            if unknown := set(entry) - known:
                raise PlanError(
                    f"layer {entry['name']}: unknown keys {sorted(map(str, unknown))}; "
                    f"allowed: {sorted(known)}"
                )
            layers.append(LayerPlan(**entry))
        precision = data.get("precision", "highest")
        return cls(str(data["target"]), layers, notes=notes, precision=precision)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the YAML; a failure leaves no partial file.

        Raises
        ------
        ArtifactError
            The file can't be written.
        """
        text = self.to_yaml()
        with replacing(Path(path)) as stream:
            stream.write(text.encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Plan:
        """Read a plan from a YAML file."""
        try:
            return cls.from_yaml(Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise PlanError(f"can't read the plan {path}: {error}") from error

    def table(self) -> Any:
        """The plan as a `rich` table."""
        from tvm_ext.tables import plan_table

        return plan_table(self)

    def __str__(self) -> str:
        from tvm_ext.tables import render

        return render(self.table())
