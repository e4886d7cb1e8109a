"""Scales move behind products: what is left, and that values stay."""

import numpy as np
from relax_models import array, const, module, ops, run
from tvm import relax

from tvm_ext.passes import ScaleBehindProduct

HALF = const(np.float32(0.3))


def _check(body, left=(2, 4, 5), right=(2, 5, 6)):
    mod = module({"x": left, "y": right}, body)
    new = ScaleBehindProduct()(mod)
    inputs = array(0, *left), array(1, *right)
    np.testing.assert_allclose(run(new, *inputs), run(mod, *inputs), rtol=1e-5, atol=1e-6)
    return ops(new)


def test_either_side():
    def left(emit, x, y):
        return relax.op.matmul(emit(relax.op.multiply(x, HALF)), y)

    def right(emit, x, y):
        return relax.op.matmul(x, emit(relax.op.multiply(y, const(np.full((1,), 0.3, "float32")))))

    def both(emit, x, y):
        return relax.op.matmul(
            emit(relax.op.multiply(x, HALF)), emit(relax.op.multiply(y, const(np.float32(-2))))
        )

    assert _check(left) == ["matmul", "multiply"]
    assert _check(right) == ["matmul", "multiply"]
    assert _check(both) == ["matmul", "multiply", "multiply"]


def test_through_moves():
    def body(emit, x, y):
        scaled = emit(relax.op.multiply(x, HALF))
        return relax.op.matmul(emit(relax.op.permute_dims(scaled, (0, 2, 1))), y)

    assert _check(body, (2, 5, 4)) == ["permute_dims", "matmul", "multiply"]


def test_what_others_read_too_stays():
    def body(emit, x, y):
        scaled = emit(relax.op.multiply(x, HALF))
        product = emit(relax.op.matmul(scaled, y))
        return relax.op.add(product, emit(relax.op.sum(scaled)))

    assert _check(body) == ["multiply", "matmul", "sum", "add"]


def test_factors_by_row_and_constant_products_stay():
    def rows(emit, x, y):
        return relax.op.matmul(emit(relax.op.multiply(x, const(array(2, 4, 1)))), y)

    def constant(emit, x, y):
        product = emit(relax.op.matmul(emit(relax.op.multiply(x, HALF)), const(array(3, 5, 6))))
        return relax.op.add(product, emit(relax.op.sum(y)))

    def larger(emit, x, y):
        factor = const(np.full((2, 1, 1), 0.5, "float32")[:1])
        return relax.op.matmul(emit(relax.op.multiply(x, factor)), y)

    assert _check(rows) == ["multiply", "matmul"]
    assert _check(constant)[0] == "multiply"
    assert _check(larger, (4, 5)) == ["multiply", "matmul"]
