"""The table of bits compared with ONNX Runtime's."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from benchmarks.bench_accelerator_exact import (
    HEADER,
    Case,
    Row,
    cases,
    cells,
    output_step,
    section,
)


def test_every_form_of_every_model() -> None:
    found = cases(["a", "b"], ["uint8"])
    assert len(found) == len(set(found)) == 8
    assert found[0] == Case("a", "QDQ", "uint8", True)
    assert found[-1] == Case("b", "QOperator", "uint8", False)


def test_cells() -> None:
    row = Row(Case("a", "QDQ", "int8", True), 1, 0.97014, 4096, 3, 1.0, 95_489_415)
    made = cells(row)
    assert len(made) == len(HEADER)
    assert made == ["a", "QDQ", "int8", "channel", "1", "97.01 %", "4096", "3", "1", "95.5"]
    text = section([row], 2**19, {"cpu": "a CPU"})
    assert "| a | QDQ | int8 | channel | 1 | 97.01 % | 4096 | 3 | 1 | 95.5 |" in text
    assert "sram_bytes=524288" in text


def test_the_step_is_the_scale_of_the_last_dequantisation() -> None:
    scales = [numpy_helper.from_array(np.float32(s), f"s{i}") for i, s in enumerate((0.5, 0.25))]
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s0"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s1"], ["y"]),
    ]
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, (1,)) for n in "xy"]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], scales)
    model = helper.make_model(graph)
    assert output_step(model) == 0.25
    del model.graph.node[1]
    with pytest.raises(RuntimeError, match="output y isn't dequantised"):
        output_step(model)
