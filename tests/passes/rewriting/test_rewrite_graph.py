"""The pass itself: to a fixed point, recorded, and no further than it can see."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from relax_models import array, module, ops, run
from tvm import relax
from tvm.relax import op

from tvm_ext.errors import OptionError
from tvm_ext.passes.rewriting import RewriteGraph


def test_unknown_rules_are_named() -> None:
    with pytest.raises(OptionError, match=r"'gelo' is no rule; there are: .*gelu"):
        RewriteGraph(without=["gelo"])


def test_rules_run_until_none_finds_anything() -> None:
    """Four transposes meet two by two, across an activation, then what is left is nothing."""

    def body(emit, x):
        for axes in ([1, 2, 0], [0, 2, 1]):
            x = emit(op.permute_dims(x, axes))
        x = emit(op.nn.relu(x))
        for axes in ([0, 2, 1], [2, 0, 1]):
            x = emit(op.permute_dims(x, axes))
        return x

    mod = module({"x": (2, 3, 4)}, body)
    rewrite = RewriteGraph()
    new = rewrite(mod)
    assert ops(new) == ["nn.relu"]
    assert {a.rule for a in rewrite.applications} == {"transpose_pair", "transpose_across"}
    x = array(0, 2, 3, 4)
    np.testing.assert_array_equal(run(new, x), np.maximum(x, 0))


def test_it_works_in_a_sequence_and_leaves_symbolic_shapes_alone() -> None:
    n = tvm.tirx.Var("n", "int64")
    x = relax.Var("x", relax.TensorType([n, 4], "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit(op.multiply(x, relax.const(1.0, "float32")))
            y = builder.emit(op.nn.relu(y))
            y = builder.emit_output(builder.emit(op.permute_dims(y, [1, 0])))
        builder.emit_func_output(y)
    mod = builder.get()
    sequence = tvm.transform.Sequential([RewriteGraph(), relax.transform.DeadCodeElimination()])
    assert ops(sequence(mod)) == ops(mod)


def test_a_value_that_is_read_elsewhere_stays() -> None:
    """The gelu is taken even so: it reads x once, where the chain is five operators."""

    def body(emit, x):
        e = emit(op.erf(emit(op.multiply(x, relax.const(0.5**0.5, "float32")))))
        y = emit(op.add(e, relax.const(1.0, "float32")))
        y = emit(op.multiply(emit(op.multiply(x, relax.const(0.5, "float32"))), y))
        return emit(op.add(y, e))

    mod = module({"x": (3, 4)}, body)
    new = RewriteGraph()(mod)
    assert ops(new) == ["multiply", "erf", "nn.gelu", "add"]
    x = array(0, 3, 4)
    np.testing.assert_allclose(run(new, x), run(mod, x), rtol=1e-6, atol=1e-6)
