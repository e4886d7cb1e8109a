"""OP_E_ADD value by value, against ONNX Runtime's QLinearAdd, and its cycles by hand."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from tests.codegen.isa.elementwise import COST_CYCLES, COST_SHAPE, SHAPES, binary, places
from tests.codegen.isa.machine import Sram, run
from tests.codegen.isa.oracle import clamped, fused

FACTORS = [(0.5, 0.25, 0.0), (0.731, 1.377, -12.25), (1e30, 1e30, 0.0), (3e38, -3e38, 1.0)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("scale", "other_scale", "offset"), FACTORS)
def test_result(shape, scale, other_scale, offset):
    registers = {
        "scale": scale, "other_scale": other_scale, "offset": offset, "clamp_low": -99,
        "clamp_high": 111,
    }  # fmt: skip
    first, second, got, _ = binary("OP_E_ADD", shape, registers)
    scale, other_scale = float(np.float32(scale)), float(np.float32(other_scale))
    for place in places(shape):
        inner = float(second[place]) * other_scale + float(np.float32(offset))
        if abs(inner) < 3e38 and abs(first[place] * scale) < 3e38:
            inner = fused(second[place], other_scale, np.float32(offset))
            total = round(float(fused(first[place], scale, inner)))
            assert got[place] == clamped(total, -99, 111)


@pytest.mark.parametrize(("scale", "result"), [(3e38, 127), (-3e38, -128)])
def test_sums_beyond_float32_saturate(scale, result):
    sram = Sram(0)
    fields = {
        "input": sram.place(np.array([100], np.int8)), "other": sram.place(np.array([1], np.int8)),
        "output": sram.space(1),
    }  # fmt: skip
    registers = {"out_height": 1, "out_width": 1, "out_channels": 1, "scale": scale}
    after, _ = run(sram, "OP_E_ADD", fields, registers)
    assert after.view(np.int8)[fields["output"]] == result


@pytest.mark.parametrize("shift", [0, 128])
@pytest.mark.parametrize("seed", range(3))
def test_all_pairs_as_onnx_runtime(seed, shift):
    """Of int8 tensors, and of uint8 ones, whose values are here less 128."""
    rng = np.random.default_rng(seed)
    sa, sb, sy = rng.uniform(0.01, 0.1, 3).astype(np.float32)
    za, zb, zy = (int(z) + shift for z in rng.integers(-40, 40, 3))
    dtype = np.uint8 if shift else np.int8
    values = np.arange(-128, 128) + shift
    first, second = (x.astype(dtype) for x in np.meshgrid(values, values))
    expected = qlinear_add(first, (sa, za), second, (sb, zb), (sy, zy)).astype(int) - shift
    scale, other_scale = sa / sy, sb / sy
    inner = fused(za, scale, np.float32(zb * other_scale))
    registers = {
        "out_height": 32, "out_width": 256, "out_channels": 1, "scale": float(scale),
        "other_scale": float(other_scale), "offset": float(np.float32(zy) - inner),
        "value_shift": shift,
    }  # fmt: skip
    for name in ("input", "other", "output"):
        registers |= {f"{name}_row_pitch": 256, f"{name}_pixel_pitch": 1}
    signed = [(x.astype(int) - shift).astype(np.int8) for x in (first, second)]
    for rows in range(0, 256, 32):
        sram = Sram(seed)
        fields = {
            "input": sram.place(signed[0][rows : rows + 32]),
            "other": sram.place(signed[1][rows : rows + 32]),
            "output": sram.space(32 * 256),
        }
        after, _ = run(sram, "OP_E_ADD", fields, registers)
        got = after[fields["output"] : fields["output"] + 32 * 256].view(np.int8)
        np.testing.assert_array_equal(got.reshape(32, 256), expected[rows : rows + 32])


def test_cycles():
    assert binary("OP_E_ADD", COST_SHAPE, {})[3] == (COST_CYCLES, 0)


def qlinear_add(first, first_quantization, second, second_quantization, result_quantization):
    """ONNX Runtime's result."""
    names = ("A", "sa", "za", "B", "sb", "zb", "sc", "zc")
    kind = helper.np_dtype_to_tensor_dtype(first.dtype)
    values, constants = {"A": first, "B": second}, []
    for end, (scale, zero) in zip(
        "abc", (first_quantization, second_quantization, result_quantization), strict=True
    ):
        constants += [
            helper.make_tensor(f"s{end}", TensorProto.FLOAT, (), [float(scale)]),
            helper.make_tensor(f"z{end}", kind, (), [zero]),
        ]
    node = helper.make_node("QLinearAdd", names, ["C"], domain="com.microsoft")
    shapes = [helper.make_tensor_value_info(n, kind, first.shape) for n in "ABC"]
    graph = helper.make_graph([node], "add", shapes[:2], shapes[2:], constants)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    onnx.checker.check_model(model)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, values)[0]
