"""The pass itself: to a fixed point, recorded, and no further than it can see."""

from __future__ import annotations

import time

import numpy as np
import pytest
import tvm
from relax_models import array, const, module, ops, run
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


def test_rules_meet_in_what_others_leave() -> None:
    """Reshapes and transposes of two branches cancel, then what is left is equal."""

    def body(emit, x):
        left = emit(op.reshape(emit(op.reshape(x, (12, 2))), (3, 8)))
        right = emit(op.permute_dims(emit(op.permute_dims(x, [1, 0, 2])), [1, 0, 2]))
        right = emit(op.reshape(right, (3, 8)))
        return emit(op.subtract(emit(op.exp(left)), emit(op.exp(right))))

    mod = module({"x": (2, 3, 4)}, body)
    rewrite = RewriteGraph()
    new = rewrite(mod)
    assert ops(new) == ["reshape", "exp", "subtract"]
    assert "common_subexpression" in {a.rule for a in rewrite.applications}
    x = array(0, 2, 3, 4)
    np.testing.assert_array_equal(run(new, x), np.zeros((3, 8), "float32"))


def test_equal_calls_that_give_tuples_are_left_alone() -> None:
    def body(emit, x):
        halves = [emit(op.split(x, 2, 0)) for _ in range(2)]
        return emit(op.add(emit(halves[0][0]), emit(halves[1][1])))

    mod = module({"x": (4, 3)}, body)
    assert ops(RewriteGraph()(mod)) == ops(mod)


def test_rows_stay_unfolded_between_products() -> None:
    """A decoder's residual follows its product at once, so that the two can be fused."""
    w, b = const(array(1, 4, 4)), const(array(2, 4))

    def body(emit, x):
        y = x
        for _ in range(2):
            flat = emit(op.reshape(y, (6, 4)))
            product = emit(op.add(emit(op.matmul(flat, w)), b))
            y = emit(op.add(emit(op.reshape(product, (2, 3, 4))), y))
        return y

    mod = module({"x": (2, 3, 4)}, body)
    new = RewriteGraph()(mod)
    assert ops(new) == ["matmul", "add", "add"] * 2
    x = array(0, 2, 3, 4)
    expected = x.astype("float64")
    for _ in range(2):
        expected = expected @ array(1, 4, 4) + array(2, 4) + expected
    np.testing.assert_allclose(run(new, x), expected, rtol=1e-5, atol=1e-5)


def test_unknown_optional_rules_are_named() -> None:
    with pytest.raises(OptionError, match=r"also='gelu' is no rule; there are: .*hard_swish"):
        RewriteGraph(also=["gelu"])


def _synthetic(blocks: int) -> tvm.IRModule:
    """Ten operators a block, of which rules find six."""

    def body(emit, x):
        for _ in range(blocks):
            for axes in ([1, 2, 0], [0, 2, 1]):
                x = emit(op.permute_dims(x, axes))
            x = emit(op.nn.relu(x))
            for axes in ([0, 2, 1], [2, 0, 1]):
                x = emit(op.permute_dims(x, axes))
            y = emit(op.reshape(emit(op.reshape(x, (6, 4))), (2, 3, 4)))
            x = emit(op.add(emit(op.multiply(y, emit(op.sigmoid(y)))), x))
        return x

    return module({"x": (2, 3, 4)}, body)


def test_time_grows_with_the_number_of_operators() -> None:
    """Four times as many take less than eight times as long; 2,000 take a second or so."""
    seconds = {}
    for blocks in (50, 200):
        mod = _synthetic(blocks)
        assert len(ops(mod)) == 10 * blocks
        seconds[blocks] = min(_process_time(mod, blocks) for _ in range(3))
    assert seconds[200] < 8 * seconds[50]
    assert seconds[200] < 10


def _process_time(mod: tvm.IRModule, blocks: int) -> float:
    start = time.process_time()
    new = RewriteGraph()(mod)
    spent = time.process_time() - start
    assert ops(new) == ["nn.relu", "nn.silu", "add"] * blocks
    return spent
