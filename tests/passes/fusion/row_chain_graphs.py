"""Networks' heads and squeeze and excitation blocks as bodies of small Relax modules."""

from __future__ import annotations

import numpy as np
from tvm.relax import op

from tests.passes.relax_models import array, const
from tvm_ext.passes import dataflow as df

C, N = 24, 10
SHAPE = (2, C, 5, 6)


def product(emit, x, n, seed=0):
    """A layer of constant weights and a bias."""
    weight = const(array(seed, df.shape_of(x)[-1], n) / np.float32(5))
    return emit(op.add(emit(op.matmul(x, weight)), const(array(seed + 1, n))))


def pool(emit, x):
    """The average of each channel, as rows."""
    rows, channels, *spatial = df.shape_of(x)
    y = emit(op.nn.avg_pool2d(x, tuple(spatial)))
    return emit(op.reshape(y, (rows, channels)))


def excitation(emit, x):
    """Channels of a map that are weighed by what its averages say."""
    rows, channels = df.shape_of(x)[:2]
    y = emit(op.nn.relu(product(emit, pool(emit, x), N)))
    y = emit(op.sigmoid(product(emit, y, channels, 2)))
    return op.multiply(x, emit(op.reshape(y, (rows, channels, 1, 1))))


def classifier(emit, x):
    """Averages, a product and its softmax."""
    return op.nn.softmax(product(emit, pool(emit, x), N))


def maximum(emit, x):
    """A step behind a pool, whose positions are squeezed away."""
    y = emit(op.nn.relu(emit(op.nn.max_pool2d(x, (5, 6)))))
    return product(emit, emit(op.squeeze(y, [2, 3])), N)


def mean(emit, x):
    """A pool that is written as a mean."""
    y = emit(op.mean(x, [2, 3], keepdims=True))
    return product(emit, emit(op.reshape(y, (2, C))), N)


def adaptive(emit, x):
    """A pool before a softmax without a product."""
    y = emit(op.nn.adaptive_avg_pool2d(x, (1, 1)))
    return op.nn.log_softmax(emit(op.reshape(y, (2, C))))


def padded_window(emit, x):
    """One window that hangs over the map, which averages the map alone."""
    y = emit(op.nn.avg_pool2d(x, (6, 7), padding=(0, 0, 1, 1)))
    return product(emit, emit(op.reshape(y, (2, C))), N)


def head(emit, x):
    """The products of a network that ends without a pool."""
    y = emit(op.reshape(x, (2, C * 30)))
    y = emit(op.nn.relu(product(emit, y, 40)))
    return op.nn.softmax(product(emit, y, N, 2))
