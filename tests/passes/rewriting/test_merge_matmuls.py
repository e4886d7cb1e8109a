"""Queries, keys and values in one product, where the parts are read in place."""

import numpy as np
from tvm import relax

from tests.passes.relax_models import array, const, module, ops, run
from tvm_ext.passes.rewriting import RewriteGraph

ROWS, WIDTH, HEADS = 5, 16, 2


def _attention(then):
    """Two projections with a bias, split in heads, and what `then` makes of them."""

    def body(emit, x):
        made = []
        for seed, axes in ((0, (1, 0, 2)), (2, (1, 2, 0))):
            y = emit(relax.op.matmul(x, const(array(seed, WIDTH, WIDTH))))
            y = emit(relax.op.add(y, const(array(seed + 1, WIDTH))))
            heads = emit(relax.op.reshape(y, (ROWS, HEADS, WIDTH // HEADS)))
            made.append(emit(relax.op.permute_dims(heads, axes)))
        return then(emit, *made)

    return module({"x": (ROWS, WIDTH)}, body)


def test_projections_that_products_read_are_one():
    mod = _attention(lambda emit, q, k: relax.op.matmul(q, k))
    new = RewriteGraph()(mod)
    assert ops(new) == [
        "matmul", "add", "strided_slice", "strided_slice", "reshape", "permute_dims", "reshape",
        "permute_dims", "matmul",
    ]  # fmt: skip
    x = array(9, ROWS, WIDTH)
    np.testing.assert_allclose(run(new, x), run(mod, x), rtol=1e-5, atol=1e-5)


def test_projections_that_are_read_whole_stay():
    def body(emit, x):
        made = []
        for seed in (0, 2):
            y = emit(relax.op.matmul(x, const(array(seed, WIDTH, WIDTH))))
            made.append(emit(relax.op.nn.softmax(emit(relax.op.add(y, const(array(5, WIDTH)))))))
        return relax.op.add(*made)

    mod = module({"x": (ROWS, WIDTH)}, body)
    assert ops(RewriteGraph()(mod)).count("matmul") == 2
