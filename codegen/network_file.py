"""A network as JSON: portable, versioned, each distinct constant once."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from tvm_ext.codegen.errors import NetworkError
from tvm_ext.codegen.network import LAYERS, Network
from tvm_ext.codegen.network_layers import Layer, TensorSpec

FORMAT = "tvm_ext.network"
VERSION = 1
_DTYPES = ("int8", "int32", "float32")
_KINDS = {kind.__name__: kind for kind in LAYERS}


def to_json(network: Network, embed: bool = True) -> str:
    """The network as JSON.

    Parameters
    ----------
    embed : bool
        Whether the constants' bytes are in it (base64, little endian). Without them it names
        each by its digest, and `from_json` needs them given.

    Returns
    -------
    str
        The same text for equal networks.
    """
    digests = {name: digest(array) for name, array in sorted(network.constants.items())}
    arrays = {digests[name]: array for name, array in network.constants.items()}
    document: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "name": network.name,
        "inputs": list(network.inputs),
        "outputs": list(network.outputs),
        "tensors": [asdict(spec) for spec in network.tensors.values()],
        "layers": [{"layer": type(x).__name__, **asdict(x)} for x in network.layers],
        "constants": digests,
    }
    if embed:
        document["data"] = {key: _encoded(arrays[key]) for key in sorted(arrays)}
    return json.dumps(document, separators=(",", ":"), allow_nan=False)


def from_json(text: str, arrays: Mapping[str, np.ndarray] | None = None) -> Network:
    """Read a network.

    Parameters
    ----------
    arrays : Mapping of str to ndarray, optional
        Constants by digest, where the JSON doesn't hold them.

    Raises
    ------
    NetworkError
        The text isn't a network, is of a newer version, lacks a constant, or is inconsistent.
    """
    document = _document(text)
    try:
        constants = _constants(document, arrays or {})
        tensors = [_spec(entry) for entry in document["tensors"]]
        layers = tuple(_layer(entry) for entry in document["layers"])
        inputs, outputs = (_names(document[key]) for key in ("inputs", "outputs"))
        name = str(document["name"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise NetworkError(f"the network's JSON is damaged: {error!r}") from error
    return Network(name, inputs, outputs, {t.name: t for t in tensors}, layers, constants)


def digest(array: np.ndarray) -> str:
    """SHA-256 over dtype, shape and little-endian bytes, in hexadecimal."""
    head = f"{array.dtype.name}{array.shape}".encode()
    return hashlib.sha256(head + _bytes(array)).hexdigest()


def _document(text: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except ValueError as error:
        raise NetworkError(f"the network is no JSON: {error}") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise NetworkError(f"the JSON isn't a network: it has no format {FORMAT!r}")
    version = document.get("version")
    if version != VERSION:
        newer = isinstance(version, int) and version > VERSION
        remedy = "; update tvm_ext" if newer else ""
        raise NetworkError(f"network version {version!r}; allowed: {VERSION}{remedy}")
    return document


def _bytes(array: np.ndarray) -> bytes:
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()


def _encoded(array: np.ndarray) -> dict[str, Any]:
    data = base64.b64encode(_bytes(array)).decode("ascii")
    return {"dtype": str(array.dtype), "shape": list(array.shape), "data": data}


def _constants(
    document: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    known = dict(arrays)
    for key, entry in document.get("data", {}).items():
        if entry["dtype"] not in _DTYPES:
            raise NetworkError(f"a constant is {entry['dtype']!r}; allowed: {', '.join(_DTYPES)}")
        raw = base64.b64decode(entry["data"], validate=True)
        stored = np.dtype(entry["dtype"]).newbyteorder("<")
        known[key] = np.frombuffer(raw, stored).reshape(entry["shape"]).astype(entry["dtype"])
        if digest(known[key]) != key:
            raise NetworkError(f"constant {key[:12]} is damaged: its bytes have another digest")
    if lost := [name for name, key in document["constants"].items() if key not in known]:
        raise NetworkError(f"the constant {lost[0]!r} isn't in the JSON and wasn't given")
    return {name: known[key] for name, key in document["constants"].items()}


def _spec(entry: Mapping[str, Any]) -> TensorSpec:
    spec = TensorSpec(**entry)
    return TensorSpec(
        str(spec.name), tuple(int(d) for d in spec.shape), str(spec.dtype), float(spec.scale),
        int(spec.zero_point),
    )  # fmt: skip


def _layer(entry: Mapping[str, Any]) -> Layer:
    if entry["layer"] not in _KINDS:
        raise NetworkError(f"unknown kind of layer {entry['layer']!r}; allowed: {sorted(_KINDS)}")
    kind: Any = _KINDS[entry["layer"]]
    values = {key: value for key, value in entry.items() if key != "layer"}
    known = {field.name for field in fields(kind)}
    if unknown := set(values) - known:
        raise NetworkError(f"layer {entry.get('name')}: unknown fields {sorted(unknown)}")
    made: Layer = kind(**{k: tuple(v) if isinstance(v, list) else v for k, v in values.items()})
    return made


def _names(entry: Any) -> tuple[str, ...]:
    if not isinstance(entry, list) or not all(isinstance(name, str) for name in entry):
        raise NetworkError(f"names of tensors are a list of strings, not {entry!r}")
    return tuple(entry)
