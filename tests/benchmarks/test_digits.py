"""The networks and data of the accuracy benchmark; MACs counted by hand."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("sklearn")
pytest.importorskip("mlxtend")

from benchmarks import digits  # noqa: E402
from tvm_ext.training import accuracy  # noqa: E402

# 3x3 convolutions on 8x8, 8x8, 4x4 and 4x4 maps, and a classifier.
VGG = {
    "features.0": 9 * 32 * 64, "features.3": 9 * 32 * 32 * 64, "features.7": 9 * 32 * 64 * 16,
    "features.10": 9 * 64 * 64 * 16, "head": 64 * 10,
}  # fmt: skip
# The second block halves the maps, and has a 1x1 convolution around it.
RESNET = {
    "stem": 9 * 16 * 64,
    "blocks.0.conv1": 9 * 16 * 16 * 64, "blocks.0.conv2": 9 * 16 * 16 * 64,
    "blocks.1.conv1": 9 * 16 * 32 * 16, "blocks.1.conv2": 9 * 32 * 32 * 16,
    "blocks.1.shortcut.0": 16 * 32 * 16,
    "blocks.2.conv1": 9 * 32 * 32 * 16, "blocks.2.conv2": 9 * 32 * 32 * 16,
    "head": 32 * 10,
}  # fmt: skip


@pytest.mark.parametrize(("make", "wanted"), [(digits.VggLike, VGG), (digits.ResNetLike, RESNET)])
def test_macs(make: Any, wanted: dict[str, int]) -> None:
    model, image = make(), torch.zeros(1, 1, 8, 8)
    assert digits.layer_macs(model, image) == wanted
    assert digits.count_macs(model, image) == sum(wanted.values())
    model.head.weight.data[:5] = 0
    removed = model.head.in_features * 5
    assert digits.count_macs(model, image) == sum(wanted.values()) - removed
    assert not any(module._forward_hooks for module in model.modules())


@pytest.mark.parametrize(("data", "size"), [("digits", 8), ("mnist", 28)])
def test_every_image_is_tested_once_by_models_that_havent_seen_it(data: str, size: int) -> None:
    images, classes = digits.DATA[data]()
    assert images.shape == (len(classes), size, size)
    assert sorted(set(classes.tolist())) == list(range(10))
    tested = 0
    for split in digits.splits(data, 5):
        x, y = split.train.tensors
        assert abs(float(x.mean())) < 1e-3
        assert float(x.std()) == pytest.approx(1, abs=1e-3)
        assert len(x) + len(split.test) == len(classes)
        tested += len(split.test)
        # Classes in equal shares: each within one image a class.
        counts = torch.bincount(split.test.tensors[1])
        assert (counts - torch.bincount(y) / 4).abs().max() <= 1
    assert tested == len(classes)


def test_one_epoch_learns_something_and_the_seed_decides() -> None:
    torch.manual_seed(0)
    split = next(digits.splits("digits", 5))
    start = digits.ResNetLike().state_dict()
    models = []
    for seed in (0, 0, 1):
        model = digits.ResNetLike()
        model.load_state_dict(start)
        models.append(digits.train(model, split, 1, seed))
    assert accuracy(models[0], split.test_loader()) > 0.5
    assert torch.equal(models[0].head.weight, models[1].head.weight)
    assert not torch.equal(models[0].head.weight, models[2].head.weight)


@pytest.mark.parametrize(
    ("data", "name"), [(d, name) for d, models in digits.MODELS.items() for name in models]
)
def test_models_take_the_images_of_their_data(data: str, name: str) -> None:
    split = next(digits.splits(data, 5))
    model = digits.MODELS[data][name]()
    assert model(split.test[:3][0]).shape == (3, 10)
    channels = [m.out_channels for m in model.modules() if isinstance(m, torch.nn.Conv2d)]
    assert all(count % 16 == 0 for count in channels)
