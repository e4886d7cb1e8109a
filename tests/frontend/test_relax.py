"""Relax modules as input: symbolic dimensions, parameters, output names."""

import numpy as np
import pytest
import tvm
from tvm import relax, tirx

from tvm_ext.errors import InputShapeError, ModelError
from tvm_ext.frontend import load_model

from .cases import call, compile_functions, normal


def symbolic_module(tuple_output=False):
    """Return ``main(x: (n, 3), w: (3,)) = x + w`` with a symbolic batch."""
    bb = relax.BlockBuilder()
    n = tirx.Var("n", "int64")
    x = relax.Var("x", relax.TensorType((n, 3), "float32"))
    w = relax.Var("w", relax.TensorType((3,), "float32"))
    with bb.function("main", [x, w]):
        total = bb.emit(relax.op.add(x, w))
        bb.emit_func_output(relax.Tuple([total, x]) if tuple_output else total)
    return bb.get()


def test_symbolic_dimensions_are_bound_and_the_module_is_not_changed():
    module = symbolic_module()
    main = load_model(module, {"x": (2, 3)})["main"]
    assert [tuple(map(int, p.ty.shape)) for p in main.params] == [(2, 3), (3,)]
    assert tuple(map(int, main.ret_ty.shape)) == (2, 3)
    assert list(main.attrs["tvm_ext.output_names"]) == ["output0"]
    tvm.ir.assert_structural_equal(module, symbolic_module(), map_free_vars=True)


def test_outputs_of_a_tuple_get_a_name_each():
    main = load_model(symbolic_module(tuple_output=True), {"x": (2, 3)})["main"]
    assert list(main.attrs["tvm_ext.output_names"]) == ["output0", "output1"]


def test_names_that_the_module_has_are_kept():
    module = symbolic_module()
    module["main"] = module["main"].with_attr("tvm_ext.output_names", ["total"])
    main = load_model(module, {"x": (2, 3)})["main"]
    assert list(main.attrs["tvm_ext.output_names"]) == ["total"]


def test_params_become_constants():
    weight, x = normal(3), normal(2, 3, seed=1)
    module = load_model(symbolic_module(), {"x": (2, 3)}, params={"w": weight})
    assert [p.name for p in module["main"].params] == ["x"]
    (got,) = call(compile_functions({"f": module["main"]}), "f", x)
    np.testing.assert_allclose(got, x + weight, rtol=1e-6)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, r"input 'x', dimension 0 is dynamic \(n\)"),
        ({"x": (-1, 3)}, r"input 'x', dimension 0: -1 must be at least 1"),
        ({"x": (2, 4)}, r"input 'x', dimension 1: the module fixes it at 3, input_shapes says 4"),
        ({"x": (2,)}, r"input 'x' has 2 dimensions, input_shapes gives 1"),
        ({"y": (2, 3)}, r"unknown inputs \['y'\]; the model's inputs are \['x', 'w'\]"),
    ],
)
def test_a_wrong_shape_names_input_and_dimension(given, message):
    with pytest.raises(InputShapeError, match=message):
        load_model(symbolic_module(), given)


def test_one_symbol_cannot_have_two_values():
    bb = relax.BlockBuilder()
    n = tirx.Var("n", "int64")
    a, b = (relax.Var(name, relax.TensorType((n,), "float32")) for name in "ab")
    with bb.function("main", [a, b]):
        bb.emit_func_output(bb.emit(relax.op.add(a, b)))
    with pytest.raises(InputShapeError, match=r"input 'b', dimension 0: n is 3 here and 2 in"):
        load_model(bb.get(), {"a": (2,), "b": (3,)})


def test_a_module_without_main_is_refused():
    with pytest.raises(ModelError, match="has no function 'main'"):
        load_model(tvm.IRModule())


def test_unknown_params_are_named():
    with pytest.raises(ModelError, match=r"unknown names \['q'\]; 'main' has \['x', 'w'\]"):
        load_model(symbolic_module(), {"x": (2, 3)}, params={"q": np.ones(3, "float32")})
