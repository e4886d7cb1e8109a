"""Reading and rebuilding Relax functions."""

import numpy as np
import pytest
from relax_models import array, const, module, ops, run
from tvm import relax, tirx

from tvm_ext.errors import ModelError
from tvm_ext.passes import dataflow as df


def two_paths():
    """((relu(x) + x) * relu(x), with relu read twice."""

    def body(emit, x):
        y = emit(relax.op.nn.relu(x))
        return relax.op.multiply(emit(relax.op.add(y, x)), y)

    return module({"x": (2, 3)}, body)


def tensor(name, *shape, dtype="float32"):
    return relax.Var(name, relax.TensorType(list(shape), dtype))


def test_bindings_are_in_order_and_the_result_is_the_last():
    func = two_paths()["main"]
    pairs = df.bindings(func)
    assert [df.op_name(e) for _, e in pairs][:3] == ["relax.nn.relu", "relax.add", "relax.multiply"]
    assert df.result(func).same_as(pairs[-1][0])


def test_control_flow_is_refused_by_name():
    x, condition = tensor("x", 2), tensor("condition", dtype="bool")
    builder = relax.BlockBuilder()
    with builder.function("main", [condition, x]):
        branch = builder.emit(relax.If(condition, relax.op.exp(x), x), "chosen")
        builder.emit_func_output(branch)
    with pytest.raises(ModelError, match="control flow at chosen is not supported"):
        df.bindings(builder.get()["main"])


def test_uses_count_every_reader_and_the_result():
    func = two_paths()["main"]
    (x,), readers = func.params, df.uses(func)
    relu, total, product = (var for var, _ in df.bindings(func)[:3])
    assert readers[x] == [relu, total]
    assert readers[relu] == [total, product]
    assert readers[total] == [product]
    assert readers[df.result(func)] == [None]


def test_an_operand_read_twice_by_one_call_counts_twice():
    mod = module({"x": (2,)}, lambda emit, x: relax.op.multiply(x, x))
    (x,) = mod["main"].params
    assert len(df.uses(mod["main"])[x]) == 2


def test_free_variables_are_found_in_tuples_and_calls():
    a, b = tensor("a", 2), tensor("b", 2)
    joined = relax.op.concat(relax.Tuple([a, relax.op.add(b, a)]))
    assert list(df.free_vars(joined)) == [a, b, a]
    assert list(df.free_vars(relax.TupleGetItem(relax.Tuple([a, b]), 1))) == [a, b]
    assert list(df.free_vars(const(array(0, 2)))) == []


def test_substitution_reaches_nested_expressions_and_opens_tuples():
    a, b, c = tensor("a", 2), tensor("b", 2), tensor("c", 2)
    pair = relax.Var("pair", relax.TupleType([a.ty, b.ty]))
    call = df.substitute(relax.op.add(a, relax.op.exp(b)), {b: c})
    assert list(df.free_vars(call)) == [a, c]
    assert df.substitute(relax.TupleGetItem(pair, 1), {pair: relax.Tuple([a, b])}).same_as(b)
    kept = df.substitute(relax.TupleGetItem(pair, 1), {})
    assert isinstance(kept, relax.TupleGetItem)
    attributes = df.substitute(relax.op.nn.leakyrelu(a, 0.3), {a: b}).attrs
    assert attributes.alpha == pytest.approx(0.3)


def test_rebuilding_with_the_identity_computes_the_same():
    mod, x = two_paths(), array(0, 2, 3)
    new = df.rebuild(mod, lambda builder, var, expr: expr)
    assert ops(new) == ops(mod)
    np.testing.assert_array_equal(run(new, x), run(mod, x))


def test_rewriting_sees_earlier_results_and_may_emit_more():
    """relu becomes maximum(-(-x), 0): the readers of relu read what replaced it."""
    zero = const(np.zeros(1, "float32"))

    def rewrite(builder, var, expr):
        if df.op_name(expr) != "relax.nn.relu":
            return expr
        negative = builder.emit(relax.op.negative(expr.args[0]))
        return relax.op.maximum(builder.emit(relax.op.negative(negative)), zero)

    mod, x = two_paths(), array(1, 2, 3)
    new = df.rebuild(mod, rewrite)
    assert ops(new) == ["negative", "negative", "maximum", "add", "multiply"]
    np.testing.assert_allclose(run(new, x), (np.maximum(x, 0) + x) * np.maximum(x, 0), rtol=1e-6)


def test_constants_take_the_place_of_variables():
    def rewrite(builder, var, expr):
        return df.constant(np.full((2, 3), 2, "float32")) if "relu" in df.op_name(expr) else expr

    new = df.rebuild(two_paths(), rewrite)
    assert ops(new) == ["add", "multiply"]
    x = array(2, 2, 3)
    np.testing.assert_allclose(run(new, x), 2 * (x + 2), rtol=1e-6)


def test_rebuilding_keeps_other_functions_and_attributes():
    mod = two_paths()
    mod["main"] = mod["main"].with_attr("note", "kept")
    mod["other"] = two_paths()["main"].with_attr("global_symbol", "other")
    new = df.rebuild(mod, lambda builder, var, expr: expr)
    assert new["main"].attrs["note"] == "kept"
    assert {gv.name_hint for gv in new.functions} == {"main", "other"}


def test_shapes_and_types():
    x = tensor("x", 2, 3, dtype="int8")
    assert (df.shape_of(x), df.dtype_of(x)) == ((2, 3), "int8")
    with pytest.raises(ModelError, match="dimension n is not static"):
        df.shape_of(relax.Var("y", relax.TensorType([tirx.Var("n", "int64"), 3], "float32")))
    with pytest.raises(ModelError, match="the shape of z is unknown"):
        df.shape_of(relax.Var("z", relax.TensorType(ndim=2, dtype="float32")))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "int8", "bool"])
def test_constants_hold_their_array(dtype):
    """Also one without dimensions, and one that isn't contiguous."""
    for value in (np.ones((), dtype), np.arange(6).reshape(2, 3).astype(dtype).T):
        made = df.constant(value)
        assert (df.shape_of(made), df.dtype_of(made)) == (value.shape, dtype)
        np.testing.assert_array_equal(df.value_of(made), value)
    assert df.value_of(tensor("x", 2)) is None


def test_only_operators_have_a_name():
    x = tensor("x", 2)
    assert df.op_name(relax.op.exp(x)) == "relax.exp"
    assert df.op_name(x) == df.op_name(relax.Tuple([x])) == ""
