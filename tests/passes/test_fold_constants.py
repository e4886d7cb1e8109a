"""FoldConstants against numpy, and what it leaves in place."""

import numpy as np
from relax_models import array, const, module, ops, run
from tvm import relax

from tvm_ext.passes import FoldConstants


def test_arithmetic_on_constants_becomes_one_constant():
    a, b = array(0, 2, 3), array(1, 3, 2)

    def body(emit, x):
        y = emit(relax.op.permute_dims(const(b), (1, 0)))
        y = emit(relax.op.multiply(emit(relax.op.add(const(a), y)), const(a)))
        y = emit(relax.op.reshape(emit(relax.op.negative(y)), (1, 6)))
        return relax.op.add(x, y)

    new = FoldConstants()(module({"x": (4, 6)}, body))
    assert ops(new) == ["add"]
    x = array(2, 4, 6)
    expected = x - ((a + b.T) * a).reshape(1, 6)
    np.testing.assert_allclose(run(new, x), expected, rtol=1e-6, atol=1e-6)


def test_dtype_is_the_operators_not_numpys():
    def body(emit, x):
        half = emit(relax.op.divide(const(np.array([7], "int32")), const(np.array([-2], "int32"))))
        return relax.op.add(x, emit(relax.op.astype(half, "float32")))

    new = FoldConstants()(module({"x": (1,)}, body))
    assert ops(new) == ["add"]
    assert run(new, np.zeros(1, "float32"))[0] == -3


def test_products_of_constants_and_constants_without_dimensions():
    a, b = array(0, 2, 3), array(1, 3, 4)

    def body(emit, x):
        y = emit(relax.op.matmul(const(a), const(b)))
        return relax.op.add(emit(relax.op.add(x, y)), emit(relax.op.negative(relax.const(2.0))))

    new = FoldConstants()(module({"x": (2, 4)}, body))
    assert ops(new) == ["add", "add"]
    x = array(2, 2, 4)
    np.testing.assert_allclose(run(new, x), x + a @ b - 2, rtol=1e-6, atol=1e-6)


def test_large_broadcast_stays_an_operator():
    def body(emit, x):
        return relax.op.add(x, emit(relax.op.broadcast_to(const(array(0, 1, 1)), (1024, 1024))))

    assert ops(FoldConstants()(module({"x": (1024, 1024)}, body))) == ["broadcast_to", "add"]


def test_operators_on_inputs_stay():
    def body(emit, x):
        return relax.op.sqrt(emit(relax.op.abs(x)))

    assert ops(FoldConstants()(module({"x": (3,)}, body))) == ["abs", "sqrt"]


def test_products_of_bytes_are_sums_of_integers():
    a, b = np.full((1, 4), 100, "int8"), np.full((4, 1), 100, "int8")

    def body(emit, x):
        y = emit(relax.op.matmul(const(a), const(b), out_dtype="int32"))
        return relax.op.add(x, y)

    new = FoldConstants()(module({"x": (1, 1)}, body, "int32"))
    assert run(new, np.zeros((1, 1), "int32"))[0, 0] == 40_000


def test_quotients_of_wide_integers_keep_their_digits():
    a = np.array([2**62 + 3, -(2**62) - 3, 7, -7, -8], "int64")
    b = np.array([1, 1, -2, 2, 2], "int64")

    def body(emit, x):
        return relax.op.add(x, emit(relax.op.divide(const(a), const(b))))

    new = FoldConstants()(module({"x": (5,)}, body, dtype="int64"))
    assert ops(new) == ["add"]
    want = [2**62 + 3, -(2**62) - 3, -3, -3, -4]
    np.testing.assert_array_equal(run(new, np.zeros(5, "int64")), want)


def test_a_known_shape_is_a_constant():
    def body(emit, x):
        shape = emit(relax.op.shape_to_tensor(emit(relax.op.shape_of(x))))
        return relax.op.take(shape, const(np.array([1, 0], "int64")), axis=0)

    new = relax.transform.DeadCodeElimination()(FoldConstants()(module({"x": (4, 6)}, body)))
    assert ops(new) == []
