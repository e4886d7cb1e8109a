"""Sums of quantised tensors: their offsets, and the code of their kernels."""

from __future__ import annotations

import numpy as np
import pytest

from tests.schedules.kernels import assembly
from tvm_ext.codegen.arithmetic import add_registers
from tvm_ext.codegen.network import Network
from tvm_ext.codegen.network_elementwise import Add
from tvm_ext.codegen.network_layers import TensorSpec
from tvm_ext.quantized.pointwise_steps import pointwise
from tvm_ext.schedules.workload import ElementwiseWorkload
from tvm_ext.target import resolve

SHAPE = (1, 32, 14, 14)
F32 = np.float32


def workload(names: tuple[str, str], scales: tuple[float, float], offset: float, unsigned: bool,
             zeros: dict[str, int], shift: int = 0) -> ElementwiseWorkload:  # fmt: skip
    """Of an `Add`."""
    layer = Add(name="y", inputs=names, output="y", scales=scales, offset=offset, shift=shift)
    used = {*names, "y"}
    tensors = {n: TensorSpec(n, SHAPE, "int8", 1.0, z) for n, z in zeros.items() if n in used}
    network = Network("n", tuple(dict.fromkeys(names)), ("y",), tensors, (layer,), {})
    return pointwise(layer, network, SHAPE, unsigned)


def constants(w: ElementwiseWorkload) -> list[tuple[str, float]]:
    """Operations with a number, in order."""
    steps = w.epilogue.steps
    return [(s.op, s.args[1][1]) for s in steps if len(s.args) > 1 and s.args[1][0] == "const"]


def test_uint8_sums_are_of_the_tensors_own_values() -> None:
    zeros = {"a": -28, "b": 12, "y": -8}
    a, b, y = (TensorSpec(n, SHAPE, "int8", float(F32(s)), zeros[n])
               for n, s in [("a", 0.05), ("b", 0.03), ("y", 0.07)])  # fmt: skip
    scales, offset = add_registers(a, b, y, 128)
    found = constants(workload(("a", "b"), scales, offset, True, zeros, 128))
    # zy - (za sa + zb sb) of the zero points 100, 140 and 120.
    assert [op for op, _ in found] == ["multiply", "add", "multiply"]
    assert found[1][1] == pytest.approx(120 - (100 * 0.05 + 140 * 0.03) / 0.07, rel=1e-6)


def test_sums_without_a_shift_are_of_values_less_128() -> None:
    """x * 0.5 + 7, as an `Add` of x to 0 times itself."""
    w = workload(("a", "a"), (0.5, 0.0), 7.0, True, {"a": 0, "y": 0})
    assert constants(w) == [
        ("subtract", 128.0), ("multiply", 0.0), ("add", 7.0), ("subtract", 128.0),
        ("multiply", 0.5), ("add", 128.0),
    ]  # fmt: skip
    assert len(w.epilogue.operands) == 1


def test_code_is_vectors() -> None:
    zeros = {"a": 3, "b": 4, "y": 5}
    w = workload(("a", "b"), (float(F32(0.3)), float(F32(0.7))), 1.5, False, zeros)
    text = assembly("elementwise", w, resolve("llvm -mcpu=emeraldrapids"), (16, 16))
    for instruction in ("vfmadd", "vrndscaleps", "vcvttps2dq", "vpmovdb"):
        lines = [line for line in text.splitlines() if instruction in line]
        assert lines
        assert all("%zmm" in line for line in lines)
    assert "vpextrb" not in text
