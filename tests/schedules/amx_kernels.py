"""What the tests of AMX kernels share."""

from __future__ import annotations

import pytest

from tvm_ext.host_amx import host_has_amx
from tvm_ext.target import resolve

HIGH = resolve("native", "high")
SAPPHIRE = resolve("llvm -mtriple=x86_64-linux-gnu -mcpu=sapphirerapids", "high")
BLOCKED = (16, 16)
# Of the largest output: random numbers, three products of bfloat16 terms.
TOLERANCE = 1.2e-5

needs_amx = pytest.mark.skipif(not host_has_amx(), reason="this machine has no AMX")
