"""Networks in NHWC and NCHW4c: their results against torch, and the transposes that are left."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from tests.frontend.cases import calls, normal
from tests.frontend.relay.convert_cases import agree, blocked, module_of, op, run, tensor
from tvm_ext.frontend.relay import ast
from tvm_ext.frontend.relay.convert import relay_to_relax
from tvm_ext.frontend.relay.views import split_runs

X = normal(2, 9, 8, 3)
W1, W2, W3 = normal(3, 3, 3, 8, seed=1), normal(3, 3, 8, 8, seed=2), normal(1, 1, 16, 4, seed=3)
BIAS, GAMMA, SLOPE = normal(8, seed=4), normal(8, seed=5), np.abs(normal(8, seed=6))
VARIANCE = np.abs(normal(8, seed=7)) + 0.5
LAYOUTS = {"data_layout": "NHWC", "kernel_layout": "HWIO"}


def constant(value: np.ndarray) -> ast.Constant:
    return ast.Constant(np.asarray(value, "float32"))


def network() -> tuple[ast.Var, ast.Expr]:
    x = tensor("x", *X.shape)
    y = op("nn.conv2d", x, constant(W1), padding=[1, 1], **LAYOUTS)
    y = op("nn.prelu", op("nn.bias_add", y, constant(BIAS), axis=3), constant(SLOPE), axis=3)
    y = op("nn.max_pool2d", y, pool_size=[2, 2], strides=[2, 2], layout="NHWC")
    z = op("nn.pad", y, constant(0), pad_width=[[0, 0], [1, 1], [1, 0], [0, 0]])
    z = op("nn.conv2d", z, constant(W2), **LAYOUTS)
    statistics = [constant(v) for v in (GAMMA, BIAS, BIAS, VARIANCE)]
    z = ast.TupleGetItem(op("nn.batch_norm", z, *statistics, axis=3), 0)
    z = op("where", op("greater", z, constant(0)), z, constant(0.5))
    z = op("strided_slice", z, begin=[0, 0, 0], end=[2, 4, 3])
    y = op("strided_slice", y, begin=[0, 0, 0], end=[2, 4, 3])
    joined = op("concatenate", ast.Tuple((op("add", z, y), op("clip", z, a_min=0.0, a_max=6.0))),
                axis=3)  # fmt: skip
    return x, op("nn.conv2d", joined, constant(W3), **LAYOUTS)


def by_torch() -> np.ndarray:
    def weight(w: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(w.transpose(3, 2, 0, 1).copy())

    bias, gamma, slope, variance = (torch.from_numpy(v) for v in (BIAS, GAMMA, SLOPE, VARIANCE))
    y = F.conv2d(torch.from_numpy(X.transpose(0, 3, 1, 2).copy()), weight(W1), bias, padding=1)
    y = F.max_pool2d(F.prelu(y, slope), 2)
    z = F.conv2d(F.pad(y, (1, 0, 1, 1)), weight(W2))
    z = F.batch_norm(z, bias, variance, gamma, bias)
    z = torch.where(z > 0, z, torch.tensor(0.5))[:, :, :4, :3]
    y = y[:, :, :4, :3]
    y = F.conv2d(torch.cat([z + y, z.clip(0, 6)], 1), weight(W3))
    return y.numpy().transpose(0, 2, 3, 1)


def test_results() -> None:
    x, body = network()
    agree(run(module_of([x], body), X), by_torch(), 1e-4)


def test_transposes_meet() -> None:
    x, w = tensor("x", 1, 6, 6, 3), constant(W1)
    y = op("nn.relu", op("nn.bias_add", op("nn.conv2d", x, w, **LAYOUTS), constant(BIAS), axis=-1))
    z = op("nn.conv2d", op("nn.relu", y), constant(W2), padding=[1, 1], **LAYOUTS)
    z = op("add", z, y)  # the residual is seen through the same transpose
    module = relay_to_relax(module_of([x], ast.Tuple((z, op("exp", z)))))
    assert calls(module) == [
        "relax.permute_dims", "relax.nn.conv2d", "relax.add", "relax.nn.relu", "relax.nn.relu",
        "relax.nn.conv2d", "relax.add", "relax.exp", "relax.permute_dims", "relax.permute_dims",
    ]  # fmt: skip


def test_what_needs_the_order_gets_it() -> None:
    x, v = tensor("x", 2, 3, 4), tensor("v", 3)
    turned = op("transpose", x, axes=[0, 2, 1])
    body = ast.Tuple((op("add", turned, v), op("sum", turned, axis=[1]), turned))
    a, b = normal(2, 3, 4), normal(3, seed=1)
    t = a.transpose(0, 2, 1)
    agree(run(module_of([x, v], body), a, b), [t + b, t.sum(1), t])
    module = relay_to_relax(module_of([x, v], body))
    assert calls(module).count("relax.permute_dims") == 1


def test_two_transposes_are_one_or_none() -> None:
    x = tensor("x", 2, 3, 4)
    once = op("transpose", op("transpose", x, axes=[1, 2, 0]), axes=[1, 2, 0])
    module = module_of([x], ast.Tuple((once, op("transpose", once, axes=[1, 2, 0]))))
    assert calls(relay_to_relax(module)) == ["relax.permute_dims"]
    a = normal(2, 3, 4)
    agree(run(module, a), [a.transpose(2, 0, 1), a])


def blocked_network() -> tuple[ast.Var, ast.Expr]:
    def conv(x: ast.Expr, w: np.ndarray, **attrs: object) -> ast.Expr:
        weight = constant(blocked(blocked(w.transpose(3, 2, 0, 1), 1, 4), 0, 4))
        return op("nn.contrib_conv2d_NCHWc", x, weight, data_layout="NCHW4c",
                  kernel_layout="OIHW4i4o", out_layout="NCHW4c", **attrs)  # fmt: skip

    x = tensor("x", 2, 8, 9, 8)
    y = op("layout_transform", x, src_layout="NCHW", dst_layout="NCHW4c")
    y = conv(y, W2, padding=[1, 1])
    y = op("nn.relu", op("add", y, constant(BIAS.reshape(1, 2, 1, 1, 4))))
    y = op("nn.max_pool2d", y, pool_size=[2, 2], strides=[2, 2], layout="NCHW4c")
    z = op("multiply", conv(y, W2, padding=[1, 1]), constant(GAMMA[:4].reshape(1, 1, 1, 1, 4)))
    z = op("add", z, y)
    z = op("concatenate", ast.Tuple((z, op("tanh", y))), axis=1)
    z = conv(z, W3)
    return x, op("layout_transform", z, src_layout="NCHW4c", dst_layout="NCHW")


def test_blocks_of_channels() -> None:
    x, body = blocked_network()
    assert calls(relay_to_relax(module_of([x], body))) == [
        "relax.nn.conv2d", "relax.add", "relax.nn.relu", "relax.nn.max_pool2d", "relax.nn.conv2d",
        "relax.multiply", "relax.add", "relax.tanh", "relax.concat", "relax.nn.conv2d",
    ]  # fmt: skip
    image = normal(2, 8, 9, 8, seed=8)
    w2, w3 = (torch.from_numpy(w.transpose(3, 2, 0, 1).copy()) for w in (W2, W3))
    scale = torch.from_numpy(np.tile(GAMMA[:4], 2))[:, None, None]
    y = F.conv2d(torch.from_numpy(image), w2, torch.from_numpy(BIAS), padding=1)
    y = F.max_pool2d(torch.relu(y), 2)
    z = F.conv2d(y, w2, padding=1) * scale + y
    z = F.conv2d(torch.cat([z, torch.tanh(y)], 1), w3)
    agree(run(module_of([x], body), image), z.numpy(), 1e-4)


def test_blocks_that_are_needed_are_made() -> None:
    x = tensor("x", 1, 8, 3, 2)
    y = op("exp", op("layout_transform", x, src_layout="NCHW", dst_layout="NCHW4c"))
    image = normal(1, 8, 3, 2)
    agree(run(module_of([x], y), image), np.ascontiguousarray(np.exp(blocked(image, 1, 4))))


@pytest.mark.parametrize(
    ("shape", "split", "runs"),
    [
        ((1, 32, 7), (1, 2, 16, 7), [(0,), (1, 2), (3,)]),
        ((1, 1, 8), (1, 1, 1, 8), [(0,), (1,), (2, 3)]),
        ((6, 4), (2, 3, 4), [(0, 1), (2,)]),
        ((6, 4), (2, 12), None),
        ((6, 4), (6, 4, 1), None),
        ((6, 4), (24,), None),
        ((2, 3), (2, 3), [(0,), (1,)]),
    ],
)
def test_split_runs(shape: tuple[int, ...], split: tuple[int, ...], runs: object) -> None:
    assert split_runs(shape, split) == runs
