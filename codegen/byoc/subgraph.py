"""A region as a network, and as the document with which a call finds it at run time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.byoc.regions import Region
from tvm_ext.codegen.errors import NetworkError
from tvm_ext.codegen.network import Network
from tvm_ext.codegen.network_file import digest, from_json, to_json
from tvm_ext.codegen.network_layers import TensorSpec

RUN = "tvm_ext.accelerator.run"
"""The function that an offloaded call calls."""

FORMAT = "tvm_ext.offload"
VERSION = 1


@dataclass(frozen=True)
class Subgraph:
    """What one call of the accelerator computes.

    Attributes
    ----------
    network : Network
        For one image.
    accelerator : Accelerator
        The variant that the model was partitioned for.
    batch : int
        Images in each of the call's tensors; the network runs once for each.
    unsigned : bool
        The call's tensors are uint8, the network's values less 128.
    operators : tuple of str
        The model's operators that are in it, in order, without the ``relax.`` prefix.
    """

    network: Network
    accelerator: Accelerator
    batch: int
    unsigned: bool
    operators: tuple[str, ...] = ()

    @property
    def macs(self) -> int:
        """Multiply-accumulates of a call."""
        return self.network.macs() * self.batch

    def document(self) -> str:
        """The subgraph as JSON without its constants."""
        return json.dumps(
            {
                "format": FORMAT,
                "version": VERSION,
                "batch": self.batch,
                "unsigned": self.unsigned,
                "operators": list(self.operators),
                "macs": self.macs,
                "accelerator": asdict(self.accelerator),
                "network": json.loads(to_json(self.network, embed=False)),
            },
            separators=(",", ":"),
        )

    def arrays(self) -> list[np.ndarray]:
        """The distinct constants in the order of their digests, as `read_subgraph` wants them."""
        arrays = {digest(array): array for array in self.network.constants.values()}
        return [arrays[key] for key in sorted(arrays)]


def make_subgraph(region: Region, name: str, accelerator: Accelerator) -> Subgraph:
    """The network of a region."""
    specs = {k: spec for match in region.matches for k, spec in match.tensors.items()}
    images = any(len(spec.shape) == 4 for spec in specs.values())
    batch = next(iter(specs.values())).shape[0] if images else 1
    network = Network(
        name,
        tuple(x.name for x in region.inputs),
        tuple(x.name for x in region.outputs),
        {k: _one_image(spec, batch) for k, spec in specs.items()},
        tuple(layer for match in region.matches for layer in match.layers),
        {k: a for match in region.matches for k, a in match.constants.items()},
    )
    operators = tuple(name for match in region.matches for name in match.operators)
    return Subgraph(network, accelerator, batch, region.matches[0].output.unsigned, operators)


def read_subgraph(document: str, arrays: list[np.ndarray]) -> Subgraph:
    """The inverse of `Subgraph.document` and `Subgraph.arrays`.

    Raises
    ------
    NetworkError
        The document is damaged or of another version, or other constants belong to it.
    AcceleratorError
        The description in it isn't allowed.
    """
    data = _document(document)
    try:
        keys = sorted(set(data["network"]["constants"].values()))
        known: Mapping[str, np.ndarray] = dict(zip(keys, arrays, strict=True))
        network = from_json(json.dumps(data["network"]), known)
        return Subgraph(
            network, Accelerator(**data["accelerator"]), int(data["batch"]),
            bool(data["unsigned"]), tuple(map(str, data["operators"])),
        )  # fmt: skip
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise NetworkError(f"the offloaded subgraph is damaged: {error!r}") from error


def tensor_counts(document: str) -> tuple[int, int]:
    """How many inputs and outputs a call has.

    Raises
    ------
    NetworkError
        As of `read_subgraph`.
    """
    network = _document(document).get("network")
    try:
        return len(network["inputs"]), len(network["outputs"])  # type: ignore[index]
    except (KeyError, TypeError) as error:
        raise NetworkError(f"the offloaded subgraph is damaged: {error!r}") from error


@dataclass(frozen=True)
class Summary:
    """What a document says without its constants: for plans and reports."""

    name: str
    accelerator: str
    operators: tuple[str, ...]
    macs: int


def summary(document: str) -> Summary:
    """The summary of a document.

    Raises
    ------
    NetworkError
        As of `read_subgraph`.
    """
    data = _document(document)
    try:
        return Summary(
            str(data["network"]["name"]), str(data["accelerator"]["name"]),
            tuple(map(str, data["operators"])), int(data["macs"]),
        )  # fmt: skip
    except (KeyError, TypeError, ValueError) as error:
        raise NetworkError(f"the offloaded subgraph is damaged: {error!r}") from error


def _document(text: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except ValueError as error:
        raise NetworkError(f"the offloaded subgraph is no JSON: {error}") from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise NetworkError(f"the JSON isn't an offloaded subgraph: it has no format {FORMAT!r}")
    if data.get("version") != VERSION:
        raise NetworkError(
            f"offloaded subgraph version {data.get('version')!r}; allowed: {VERSION}"
        )
    return data


def _one_image(spec: TensorSpec, batch: int) -> TensorSpec:
    return replace(spec, shape=(spec.shape[0] // batch, *spec.shape[1:]))
