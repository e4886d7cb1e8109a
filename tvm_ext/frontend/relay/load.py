"""A saved Relay module as a Relax module: read, check operators, convert."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import tvm

from tvm_ext.frontend.relay.convert import relay_to_relax
from tvm_ext.frontend.relay.read import (
    is_relay_json,
    is_relay_text,
    read_relay_json,
    read_relay_text,
)


def is_relay(path: str | Path) -> bool:
    """Whether a file begins as a saved Relay module does, in either form."""
    return is_relay_json(path) or is_relay_text(path)


def load_relay(
    path: str | Path,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    params: Mapping[str, np.ndarray] | None = None,
) -> tvm.IRModule:
    """Convert a saved Relay module; see `tvm_ext.frontend.load_model` for arguments and result."""
    read = read_relay_json if is_relay_json(path) else read_relay_text
    return relay_to_relax(read(Path(path)), params, input_shapes)
