"""PyTorch modules, exported, built and called; torch's eager result is the oracle."""

import numpy as np
import pytest

import tvm_ext
from tvm_ext.errors import CallError
from tvm_ext.frontend import load_model

from .cases import calls
from .torch_cases import check, compare, export, leaves, normal, operators, run, torch

nn = torch.nn
F = nn.functional


class Block(nn.Module):
    """Two convolutions with batch norms, and a shortcut around them."""

    def __init__(self, channels):
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)
        self.second_norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        y = F.relu(self.first_norm(self.first(x)), inplace=True)
        return F.relu(self.second_norm(self.second(y)) + x)


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 32, 7, stride=2, padding=3)
        self.norm = nn.BatchNorm2d(32)
        self.block = Block(32)
        self.depthwise = nn.Conv2d(32, 32, 3, groups=32, padding=1)
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.stem(x))), 3, 2, 1)
        x = F.hardswish(self.depthwise(self.block(x)))
        return self.head(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


def with_statistics(module):
    """Give every batch norm a mean and a variance that aren't 0 and 1."""
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.running_mean.copy_(normal(part.num_features))
            part.running_var.copy_(normal(part.num_features, seed=1).abs() + 0.5)
    return module


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def test_convolutional_network_uses_our_kernels():
    exe = check(with_statistics(ConvNet()), normal(2, 3, 32, 32))
    assert exe.input_names == ("x",)
    assert exe.output_names == ("output0",)
    # Batch norms and biases are in the weights; activations and the shortcut in the epilogues.
    assert operators(exe) == [
        "conv2d add relu max_pool2d",
        "conv2d add relu",
        "conv2d add add relu",
        "conv2d add multiply add clip multiply",
        "mean reshape matmul add",
    ]
    algorithms = [layer.algorithm for layer in exe.plan if layer.ops[0] == "nn.conv2d"]
    assert algorithms[0] == "spatial_pack"
    assert algorithms[3] == "depthwise"
    assert operators(exe, "generic") == []


def test_weights_are_constants_and_the_program_is_not_changed():
    module = ConvNet()
    program = export(module, normal(1, 3, 32, 32))
    before = str(program.graph), {k: v.clone() for k, v in program.state_dict.items()}
    main = load_model(program)["main"]
    assert [p.name for p in main.params] == ["x"]
    assert str(program.graph) == before[0]
    for name, value in program.state_dict.items():
        assert torch.equal(value, before[1][name])


def test_perceptron_with_activations_in_the_epilogues():
    exe = check(
        nn.Sequential(
            nn.Linear(12, 20), nn.GELU(), nn.Linear(20, 20), nn.SiLU(),
            nn.Linear(20, 20), nn.Hardswish(), nn.Linear(20, 7), nn.Softmax(-1),
        ),
        normal(3, 5, 12),
    )  # fmt: skip
    assert operators(exe) == [
        "matmul add gelu",
        "matmul add silu",
        "matmul add multiply add clip multiply",
        "matmul add softmax",
    ]


def test_transformer_layer():
    exe = check(
        nn.TransformerEncoderLayer(16, 2, 24, batch_first=True, activation="gelu"),
        normal(2, 5, 16),
    )
    assert exe.input_names == ("src",)
    # The cuts of the joint projection of query, key and value have kernels, or are views.
    assert not operators(exe, "generic")


class Language(nn.Module):
    """Token and position embeddings, causal attention, a projection onto the vocabulary."""

    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(50, 16), nn.Embedding(12, 16)
        self.norm, self.attention = nn.LayerNorm(16), nn.Linear(16, 48)
        self.head = nn.Linear(16, 50, bias=False)

    def forward(self, ids):
        batch, length = ids.shape
        x = self.tokens(ids) + self.positions(torch.arange(length, device=ids.device))
        q, k, v = self.attention(self.norm(x)).view(batch, length, 3, 2, 8).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.head(x + mixed.transpose(1, 2).reshape(batch, length, 16))


def test_language_model_with_dynamic_batch_and_length():
    ids = torch.randint(0, 50, (3, 7))
    dims = {"ids": {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim("length", max=12)}}
    module = Language()
    program = export(module, ids, dynamic_shapes=dims)
    exe = tvm_ext.build(program, input_shapes={"ids": (1, 12)})
    ids = torch.randint(0, 50, (1, 12))
    compare(run(exe, ids)[0], module(ids).detach().numpy())
    # The table of positions is sliced, and the mask made, at import.
    assert operators(exe)[:3] == ["take", "add", "layer_norm matmul add"]
    assert set(operators(exe, "generic")) == {"take"}
    with pytest.raises(CallError, match="allowed: "):
        exe(np.zeros((2, 12), "int64"))


class Several(nn.Module):
    def forward(self, image, more, flag=None, times=2):
        total = image.sum(0) * times
        return {"total": total, "pair": (more["a"] + 1, image), "nothing": flag}


def test_inputs_and_outputs_in_containers():
    image, more = normal(2, 3), {"a": normal(4)}
    module = Several()
    exe = tvm_ext.build(torch.export.export(module, (image, more), {"flag": None, "times": 3}))
    # Arguments that aren't tensors have the value that they had at export.
    assert exe.input_names == ("image", "more_a")
    assert exe.output_names == ("total", "pair_0", "pair_1")
    wanted = leaves({k: v for k, v in module(image, more, times=3).items() if v is not None})
    got = exe({"image": image.numpy(), "more_a": more["a"].numpy()})
    for ours, theirs in zip(got, wanted, strict=True):
        compare(ours, theirs)


class Constants(nn.Module):
    """Everything here but one product is known before an input is."""

    def __init__(self):
        super().__init__()
        self.register_buffer("table", normal(4, 6), persistent=False)
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, x):
        mask = torch.triu(torch.ones(6, 6), 1)[:4].bool()
        rows = (self.table.to(torch.float64) * self.scale).float().masked_fill(mask, 0.0)
        return x * (rows + torch.arange(6).flip(0))


def test_what_is_known_is_computed_at_import():
    module, x = Constants(), normal(4, 6)
    assert calls(load_model(export(module, x))) == ["relax.multiply"]
    check(module, x)


class Passing(nn.Module):
    def forward(self, x):
        return x, torch.arange(3), x + 1


def test_inputs_and_constants_as_outputs():
    check(Passing(), normal(2, 3))


def test_weights_that_share_memory_or_are_not_contiguous():
    module = nn.Sequential(nn.Conv2d(4, 6, 3), nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 6))
    module.to(memory_format=torch.channels_last)
    module[3].weight = module[1].weight
    check(module, normal(1, 4, 9, 8))


def test_half_precision_runs_in_half_precision():
    exe = tvm_ext.build(export(nn.Linear(6, 4).half(), normal(2, 6).half()))
    (got,) = run(exe, normal(2, 6).half())
    assert got.dtype == np.float16


def test_params_bind_inputs():
    class Sum(nn.Module):
        def forward(self, x, y):
            return x + y

    x, y = normal(2, 3), normal(2, 3, seed=1)
    module = load_model(export(Sum(), x, y), params={"y": y.numpy()})
    assert [p.name for p in module["main"].params] == ["x"]
    compare(run(tvm_ext.build(module), x)[0], (x + y).numpy())
