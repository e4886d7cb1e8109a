"""Networks of one convolution, small enough to work out their costs by hand."""

from __future__ import annotations

import numpy as np

from tests.codegen.networks import network_of, spec
from tvm_ext.codegen.network import Network
from tvm_ext.codegen.network_layers import Conv


def conv_network(
    channels: int = 8, filters: int = 70, size: int = 12, kernel: int = 1, depthwise: bool = False
) -> Network:
    """A convolution of (1, channels, size, size), without padding."""
    rng = np.random.default_rng(0)
    filters = channels if depthwise else filters
    fan_in, out = 1 if depthwise else channels, size - kernel + 1
    constants = {
        "w": rng.integers(-128, 128, (filters, fan_in, kernel, kernel)).astype("int8"),
        "b": rng.integers(-100, 100, filters).astype("int32"),
        "s": rng.uniform(1e-3, 2e-3, filters).astype("float32"),
    }
    layer = Conv(
        name="conv", inputs=("x",), output="y", weight="w", bias="b", scales="s",
        groups=channels if depthwise else 1,
    )  # fmt: skip
    specs = [spec("x", (1, channels, size, size), 0.5), spec("y", (1, filters, out, out), 0.5)]
    return network_of(layer, specs, constants)
