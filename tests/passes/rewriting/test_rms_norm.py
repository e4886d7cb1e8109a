"""The norms of Llama and its like: what exporters write of them becomes one kernel again."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import torch
from onnx import helper, numpy_helper

import tvm_ext
from tests import models

WIDTH = 40
GAMMA = np.random.default_rng(1).normal(size=WIDTH).astype("float32")
X = np.random.default_rng(0).normal(size=(2, 5, WIDTH)).astype("float32")
EPSILON = 1e-3


class LlamaNorm(torch.nn.Module):
    """As transformers has it."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.from_numpy(GAMMA.copy()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.to(torch.float32)
        variance = wide.pow(2).mean(-1, keepdim=True)
        return self.weight * (wide * torch.rsqrt(variance + EPSILON)).to(x.dtype)


class GemmaNorm(LlamaNorm):
    """Its weights are what is added to 1."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inverse = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPSILON)
        return x * inverse * (self.weight + 1)


def expected(gamma: np.ndarray = GAMMA) -> np.ndarray:
    x = X.astype("float64")
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + EPSILON) * gamma


def check(model: object, wanted: np.ndarray) -> None:
    exe = tvm_ext.build(model, tuning="none")
    assert [layer.ops for layer in exe.plan] == [["nn.rms_norm"]]
    assert exe.plan.layers[0].algorithm == "normalize"
    assert models.relative_error(exe(X), wanted) < 1e-6


@pytest.mark.parametrize("inverse", [["Sqrt", "Div"], ["Sqrt", "Reciprocal", "Mul"]])
@pytest.mark.parametrize("gamma_first", [False, True])
@pytest.mark.parametrize("axes_are_an_input", [False, True])
def test_nodes_of_onnx(inverse: list[str], gamma_first: bool, axes_are_an_input: bool) -> None:
    """PyTorch's exporter writes Pow, ReduceMean, Add, Sqrt and either of the two."""
    weights = {"two": np.float32(2), "epsilon": np.float32(EPSILON), "gamma": GAMMA}
    mean = helper.make_node("ReduceMean", ["square"], ["mean"], axes=[-1])
    if axes_are_an_input:
        weights["axes"] = np.array([-1])
        mean = helper.make_node("ReduceMean", ["square", "axes"], ["mean"])
    *steps, last = inverse
    names = ["shifted", *(f"step{i}" for i in range(len(steps)))]
    scale = ["gamma", "normal"] if gamma_first else ["normal", "gamma"]
    nodes = [
        helper.make_node("Pow", ["x", "two"], ["square"]),
        mean,
        helper.make_node("Add", ["mean", "epsilon"], ["shifted"]),
        *(helper.make_node(op, [names[i]], [names[i + 1]]) for i, op in enumerate(steps)),
        helper.make_node(last, ["x", names[-1]], ["normal"]),
        helper.make_node("Mul", scale, ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "norm",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, X.shape)],
        [onnx.ValueInfoProto(name="y")],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()],
    )
    opset = helper.make_opsetid("", 18 if axes_are_an_input else 17)
    check(helper.make_model(graph, opset_imports=[opset], ir_version=9), expected())


@pytest.mark.parametrize(
    ("module", "gamma"),
    [(LlamaNorm(), GAMMA), (GemmaNorm(), GAMMA + 1),
     (torch.nn.RMSNorm(WIDTH, eps=EPSILON), np.ones(WIDTH))],
)  # fmt: skip
def test_programs_of_pytorch(module: torch.nn.Module, gamma: np.ndarray) -> None:
    check(torch.export.export(module.eval(), (torch.from_numpy(X),)), expected(gamma))


def test_a_written_layer_norm_stays_one() -> None:
    """Its inner part, a norm of what is centred, is none by itself."""

    class LayerNorm(LlamaNorm):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            centred = x - x.mean(-1, keepdim=True)
            variance = (centred * centred).mean(-1, keepdim=True)
            return centred / torch.sqrt(variance + EPSILON) * self.weight + self.weight

    exe = tvm_ext.build(torch.export.export(LayerNorm(), (torch.from_numpy(X),)))
    assert [layer.ops for layer in exe.plan] == [["nn.layer_norm"]]
    centred = X - X.mean(-1, keepdims=True)
    wanted = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + EPSILON) * GAMMA + GAMMA
    np.testing.assert_allclose(exe(X), wanted, rtol=1e-4, atol=1e-5)
