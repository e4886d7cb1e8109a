"""Small networks with the channels that are tied in them, worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm.relax import op

from tests.passes.pruning.channel_build import Build, Members, Network
from tests.passes.relax_models import const


def _vgg(b: Build, x: Any) -> Any:
    x = b.relu(b.conv("a", x, 8, 3))
    x = b.emit(op.nn.max_pool2d(x, (2, 2), (2, 2)))
    x = b.relu(b.conv("b", x, 12, 3))
    return b.head(b.relu(b.conv("c", x, 6, 3)))


def _resnet(b: Build, x: Any) -> Any:
    x = b.relu(b.norm("a", b.conv("a", x, 8, 3, bias=False)))
    y = b.relu(b.norm("b", b.conv("b", x, 6, 3, bias=False)))
    y = b.norm("c", b.conv("c", y, 8, 3, bias=False))
    x = b.relu(b.emit(op.add(x, y)))
    y = b.relu(b.conv("d", x, 10, 3, strides=[2, 2]))
    y = b.conv("e", y, 16, 3)
    shortcut = b.conv("f", x, 16, strides=[2, 2])
    return b.head(b.relu(b.emit(op.add(y, shortcut))))


def _densenet(b: Build, x: Any) -> Any:
    x = b.conv("a", x, 8, 3)
    y = b.conv("b", b.relu(b.norm("a", x)), 4, 3)
    x = b.concat(x, y)
    z = b.conv("c", b.relu(x), 4, 3)
    return b.head(b.relu(b.concat(x, z)))


def _twice(b: Build, x: Any) -> Any:
    x = b.relu(b.conv("a", x, 8, 3))
    return b.head(b.relu(b.conv("b", b.concat(x, x), 6, 3)))


def _shufflenet(b: Build, x: Any) -> Any:
    x = b.relu(b.conv("a", x, 16, 3))
    left, right = b.halves(x)
    right = b.relu(b.conv("b", right, 8))
    x = b.shuffle(b.concat(left, right), 2)
    left, right = b.halves(x)
    right = b.conv("c", b.conv("d", right, 8, 3, groups=8), 8)
    return b.head(b.relu(b.shuffle(b.concat(left, right), 2)))


def _three_shuffles(b: Build, x: Any) -> Any:
    x = b.shuffle(b.relu(b.conv("a", x, 12, 3)), 3)
    x = b.shuffle(b.shuffle(b.conv("b", x, 12, 3, groups=12), 2), 3)
    return b.head(b.relu(b.conv("c", x, 6)))


def _mobilenet(b: Build, x: Any) -> Any:
    x = b.conv("a", x, 8)
    y = b.relu(b.conv("b", x, 12))
    y = b.relu(b.conv("c", y, 12, 3, groups=12))
    x = b.emit(op.add(x, b.conv("d", y, 8)))
    y = b.conv("e", x, 16, 3, groups=8)
    return b.head(b.conv("f", y, 6))


def _resnext(b: Build, x: Any) -> Any:
    x = b.relu(b.conv("a", x, 16))
    x = b.relu(b.conv("b", x, 8, 3, groups=4))
    return b.head(b.conv("c", x, 6))


def _squeeze(b: Build, x: Any) -> Any:
    x = b.relu(b.conv("a", x, 8, 3))
    y = b.emit(op.nn.avg_pool2d(x, (6, 6)))
    y = b.relu(b.conv("b", y, 4))
    y = b.emit(op.sigmoid(b.conv("c", y, 8)))
    return b.head(b.emit(op.multiply(x, y)))


def _flatten(b: Build, x: Any) -> Any:
    x = b.emit(op.nn.max_pool2d(b.relu(b.conv("a", x, 8, 3)), (2, 2), (2, 2)))
    x = b.relu(b.dense("b", b.emit(op.reshape(x, (1, 72))), 10))
    return b.dense("c", x, 4)


def _padded_shortcut(b: Build, x: Any) -> Any:
    x = b.relu(b.conv("a", x, 4, 3))
    y = b.conv("b", x, 8, 3)
    x = b.emit(op.nn.pad(x, [0, 0, 2, 2, 0, 0, 0, 0]))
    return b.head(b.relu(b.emit(op.add(x, y))))


def _unet(b: Build, x: Any) -> Any:
    x = b.conv("a", x, 8, 3)
    x = b.emit(op.nn.prelu(x, b.weights("slopes", 8), axis=1))
    y = b.emit(op.nn.max_pool2d(x, (2, 2), (2, 2)))
    y = b.relu(b.conv("b", y, 8, 3))
    y = b.emit(op.image.resize2d(
        y, (6, 6), method="nearest_neighbor", coordinate_transformation_mode="asymmetric",
        rounding_method="floor",
    ))  # fmt: skip
    z = b.emit(op.nn.conv2d_transpose(b.relu(b.conv("c", y, 6)), b.weights("t", 6, 4, 1, 1)))
    return b.head(b.concat(x, y, z))


def _recurrent(b: Build, x: Any) -> Any:
    """Two steps of a recurrent layer, whose weights both use, from a constant state."""
    h = const(np.zeros((2, 8), "float32"))
    for step in ("first", "b"):
        y = b.emit(op.add(b.emit(op.matmul(x, b.weights("a", 3, 8)), "a"), b.weights("a.bias", 8)))
        z = b.emit(op.matmul(h, b.weights("b", 8, 8)), step)
        h = b.emit(op.tanh(b.emit(op.add(y, z))))
    return b.dense("head", h, 4)


def _line(b: Build, x: Any) -> Any:
    """One spatial dimension."""
    x = b.relu(b.conv("a", x, 8, 3))
    x = b.relu(b.conv("c", x, 8, 3, groups=8))
    return b.emit(op.mean(b.conv("b", x, 4, 3), [2]))


def _volume(b: Build, x: Any) -> Any:
    """Three spatial dimensions."""
    x = b.conv("c", b.relu(b.conv("a", x, 8, 3)), 8, 3, groups=2)
    return b.conv("b", x, 4)


def _vector(b: Build, x: Any) -> Any:
    """Dense layers on a tensor of one dimension."""
    return b.dense("b", b.relu(b.dense("a", x, 8)), 4)


def _one(name: str, count: int, start: int = 0) -> Members:
    return [(name, range(start, start + count))]


NETWORKS = (
    Network("vgg", _vgg, [(_one("a", 8), 4), (_one("b", 12), 6), (_one("c", 6), 3)]),
    Network("resnet", _resnet, [(_one("a", 8) + _one("c", 8), 4), (_one("b", 6), 3),
                                (_one("d", 10), 5), (_one("e", 16) + _one("f", 16), 8)]),
    Network("densenet", _densenet, [(_one("a", 8), 4), (_one("b", 4), 2), (_one("c", 4), 2)]),
    Network("twice", _twice, [(_one("a", 8), 4), (_one("b", 6), 3)]),
    # `d` has what the second halves of `a`'s first half and of `b` are behind the shuffle.
    Network("shufflenet", _shufflenet, [
        ([*_one("a", 4), *_one("b", 4), ("c", range(0, 8, 2)), ("c", range(1, 8, 2))], 2),
        ([*_one("a", 4, 4), *_one("b", 4, 4), ("d", range(0, 8, 2)), ("d", range(1, 8, 2))], 2),
        (_one("a", 8, 8), 4)]),
    # Tying the shuffles' channels would tie all. Filter i of `b` reads what the first puts there.
    Network("three shuffles", _three_shuffles, [
        ([("a", [i % 3 * 4 + i // 3 for i in range(12)]), *_one("b", 12)], 6), (_one("c", 6), 3)]),
    Network("mobilenet", _mobilenet, [
        ([*_one("a", 8), *_one("d", 8), ("e", range(0, 16, 2)), ("e", range(1, 16, 2))], 4),
        (_one("b", 12) + _one("c", 12), 6), (_one("f", 6), 3)]),
    Network("resnext", _resnext, [
        *((_one("a", 4, g), 2) for g in range(0, 16, 4)),
        *((_one("b", 2, g), 1) for g in range(0, 8, 2)), (_one("c", 6), 3)]),
    Network("squeeze", _squeeze, [(_one("a", 8) + _one("c", 8), 4), (_one("b", 4), 2)]),
    Network("flatten", _flatten, [(_one("a", 8), 4), (_one("b", 10), 5)]),
    Network("padded shortcut", _padded_shortcut, [
        (_one("a", 4) + _one("b", 4, 2), 2), ([("b", (0, 1, 6, 7))], 2)]),
    Network("unet", _unet, [(_one("a", 8), 4), (_one("b", 8), 4), (_one("c", 6), 3)]),
    Network("recurrent", _recurrent, [(_one("a", 8) + _one("b", 8), 4)], (2, 3)),
    Network("line", _line, [(_one("a", 8) + _one("c", 8), 4)], (2, 3, 7)),
    Network("volume", _volume, [
        (_one("a", 4), 2), (_one("a", 4, 4), 2), (_one("c", 4), 2), (_one("c", 4, 4), 2)],
        (1, 2, 3, 4, 3)),
    Network("vector", _vector, [(_one("a", 8), 4)], (3,)),
)  # fmt: skip
