"""Golden operators and values of MergeAffine."""

import numpy as np
from relax_models import array, const, module, ops, run
from tvm import relax

from tvm_ext.passes import MergeAffine

A, B, C, D = (array(i, 1, 5, 1, 1) for i in range(4))


def test_chain_becomes_one_multiply_and_one_add():
    def body(emit, x):
        x = emit(relax.op.add(emit(relax.op.multiply(x, const(A))), const(B)))
        return relax.op.nn.relu(emit(relax.op.add(emit(relax.op.multiply(x, const(C))), const(D))))

    mod = module({"x": (2, 5, 3, 3)}, body)
    new = MergeAffine()(mod)
    assert ops(new) == ["multiply", "add", "nn.relu"]
    x = array(9, 2, 5, 3, 3)
    expected = np.maximum(((x.astype("f8") * A + B) * C + D), 0)
    np.testing.assert_allclose(run(new, x), expected, rtol=2e-6, atol=2e-6)


def test_value_with_another_reader_is_kept():
    def body(emit, x):
        y = emit(relax.op.multiply(x, const(A)))
        z = emit(relax.op.multiply(y, const(B)))
        return relax.op.subtract(y, z)

    mod = module({"x": (1, 5, 2, 2)}, body)
    new = MergeAffine()(mod)
    assert ops(new) == ["multiply", "multiply", "subtract"]
    x = array(9, 1, 5, 2, 2)
    expected = x.astype("f8") * A * (1 - B.astype("f8"))
    np.testing.assert_allclose(run(new, x), expected, rtol=2e-6, atol=2e-6)


def test_full_tensor_constant_is_left_alone():
    full = array(5, 1, 5, 2, 2)

    def body(emit, x):
        return relax.op.multiply(emit(relax.op.multiply(x, const(A))), const(full))

    mod = module({"x": (1, 5, 2, 2)}, body)
    assert ops(MergeAffine()(mod)) == ["multiply", "multiply"]
