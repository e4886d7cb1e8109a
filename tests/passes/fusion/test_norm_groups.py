"""Which norms become one kernel with the product before or behind them."""

from __future__ import annotations

import numpy as np
import pytest
from tvm.relax import op

import tvm_ext
from tests.passes.relax_models import array, const, module, run
from tvm_ext.fusion_profile import CostProfile
from tvm_ext.layers import layers
from tvm_ext.passes import UniversalFusion
from tvm_ext.schedules.matmul_workload import MatmulWorkload
from tvm_ext.schedules.workload import NormalizeWorkload
from tvm_ext.target import resolve

K, N = 24, 40
SHAPE = (2, 5, K)
WEIGHT, BIAS, BACK = array(0, K, N), array(1, N), array(2, N, K)
GAMMA, BETA = array(3, K), array(4, K)


def _norm(emit, x, size=K, **options):
    gamma, beta = (const(array(seed, size)) for seed in (3, 4))
    return emit(op.nn.layer_norm(x, gamma, beta, **{"axes": [-1], **options}))


def _rms(emit, x):
    return emit(op.nn.rms_norm(x, const(GAMMA), axes=[-1]))


def _product(emit, x, weight=WEIGHT):
    return emit(op.add(emit(op.matmul(x, const(weight))), const(array(1, weight.shape[1]))))


def _before(emit, x):
    """A network whose norm comes first; the residual reads what the norm does."""
    y = emit(op.nn.gelu(_product(emit, _norm(emit, x))))
    return op.add(_product(emit, y, BACK), x)


def _behind(emit, x):
    """A network whose norm comes last, of the sum with the residual."""
    y = emit(op.nn.gelu(_product(emit, x)))
    return _norm(emit, emit(op.add(_product(emit, y, BACK), x)))


def _layers(body, profile=None, **inputs):
    fusion = UniversalFusion(profile) if profile else UniversalFusion()
    return layers(fusion(module(inputs or {"x": SHAPE}, body))), fusion.refusals


def test_a_product_normalises_its_rows():
    found, _ = _layers(_before, x=SHAPE)
    assert [layer.ops[:2] for layer in found] == [("nn.layer_norm", "matmul"), ("matmul", "add")]
    layer, w = found[0], found[0].workload
    assert isinstance(w, MatmulWorkload) and w.producer is not None
    assert (w.producer.rows, w.producer.columns, w.n) == (10, K, N)
    assert [x.shape for x in layer.weights] == [(K, N), (K,), (K,)]
    assert [s.op for s in w.epilogue.steps] == ["add", "gelu"]


def test_a_norm_takes_the_product_before_it():
    found, _ = _layers(_behind, x=SHAPE)
    assert [layer.ops for layer in found] == [
        ("matmul", "add", "nn.gelu"),
        ("matmul", "add", "add", "nn.layer_norm"),
    ]
    layer, w = found[1], found[1].workload
    assert isinstance(w, NormalizeWorkload) and isinstance(w.producer, MatmulWorkload)
    assert [x.shape for x in layer.weights] == [(K,), (K,), (N, K)]
    assert [s.op for s in w.producer.epilogue.steps] == ["add", "add"]
    assert len(layer.operands) == 2


def _modulated(emit, x):
    """A norm whose result is multiplied before the product reads it."""
    y = emit(op.multiply(_norm(emit, x), const(array(6, K))))
    return _product(emit, y)


def _rms_before(emit, x):
    return _product(emit, _rms(emit, x))


def _rms_behind(emit, x):
    return _rms(emit, _product(emit, x, array(0, K, K)))


def _classifier(emit, x):
    return op.nn.softmax(_product(emit, x), axis=-1)


@pytest.mark.parametrize(
    "body", [_before, _behind, _modulated, _rms_before, _rms_behind, _classifier]
)
def test_built_models_compute_the_same(body):
    mod, data = module({"x": SHAPE}, body), array(9, *SHAPE)
    found, _ = _layers(body)
    assert any(layer.workload.producer is not None for layer in found)
    out = tvm_ext.build(mod)(data)
    np.testing.assert_allclose(out, run(mod, data), rtol=1e-4, atol=1e-4)


def test_the_joined_kernels_are_ours():
    exe = tvm_ext.build(module({"x": (1, 8, K)}, _classifier))
    assert [layer.algorithm for layer in exe.plan] == ["matmul_normalized"]


def _read_by_two(emit, x):
    y = _norm(emit, x)
    return op.concat([_product(emit, y), _product(emit, y, array(7, K, N))], 2)


def _kept(emit, x):
    y = _norm(emit, x)
    return op.add(_product(emit, y, array(7, K, K)), y)


def _sum_is_kept(emit, x):
    y = emit(op.add(_product(emit, x, array(7, K, K)), x))
    return op.add(_norm(emit, y), y)


def _of_two_dimensions(emit, x):
    y = _product(emit, x, array(7, K, K))
    gamma, beta = const(array(3, 5, K)), const(array(4, 5, K))
    return op.nn.layer_norm(y, gamma, beta, axes=[-2, -1])


def _computed_weights(emit, x):
    y = _product(emit, x, array(7, K, K))
    gamma = emit(op.mean(x, axis=[0, 1]))
    return op.nn.layer_norm(y, gamma, const(BETA), axes=[-1])


def _softmax_first(emit, x):
    return op.matmul(emit(op.nn.softmax(x, axis=-1)), const(WEIGHT))


def _batched_right(emit, x):
    return op.matmul(_norm(emit, x), const(array(7, 2, K, N)))


@pytest.mark.parametrize(
    "body",
    [
        _read_by_two,
        _kept,
        _sum_is_kept,
        _of_two_dimensions,
        _computed_weights,
        _softmax_first,
        _batched_right,
    ],
)
def test_others_stay_apart(body):
    found, _ = _layers(body)
    assert all(getattr(layer.workload, "producer", None) is None for layer in found)
    assert len(found) > 1


def test_a_norm_on_either_side_is_one_too_many():
    def body(emit, x):
        return _norm(emit, _product(emit, _norm(emit, x)), N)

    found, refusals = _layers(body)
    assert [layer.ops.count("nn.layer_norm") for layer in found] == [1, 1]
    reason = "one of the two kernels has steps before it, a pool or a producer"
    assert reason in [r.reason for r in refusals]


def test_the_cost_model_compares_with_sparse_kernels():
    """No sparse kernel goes on with a norm: at many zeros the two alone are faster."""
    rng, cpu = np.random.default_rng(0), resolve("llvm -mcpu=core-avx2")

    def joined(density):
        weight = array(0, 384, 384) * (rng.random((384, 384)) < density).astype("float32")

        def body(emit, x):
            return _norm(emit, emit(op.add(_product(emit, x, weight), x)), 384)

        found, _ = _layers(body, CostProfile(cpu), x=(64, 384))
        return len(found) == 1

    assert joined(1.0) and not joined(0.05)
