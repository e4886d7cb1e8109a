"""Sparse initialisers and constants: the values that arrive, and what is said of bad ones."""

import numpy as np
import onnx
import pytest
import tvm
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.frontend import load_model
from tvm_ext.frontend.onnx_sparse import dense_value

from .cases import call, compile_functions, normal, run_onnxruntime
from .models import make_model

# Values 1 and 2 at (0, 1) and (1, 2).
WANTED = np.array([[0, 1, 0], [0, 0, 2]], "float32")


def sparse(indices, dims=(2, 3), values=(1.0, 2.0), name="w", dtype="float32"):
    return helper.make_sparse_tensor(
        numpy_helper.from_array(np.array(values, dtype), name),
        numpy_helper.from_array(np.array(indices, "int64"), f"{name}_indices"),
        dims,
    )


def of_dense(array, name="w", linear=True):
    """The sparse tensor of an array's nonzero values."""
    indices = np.flatnonzero(array) if linear else np.argwhere(array)
    return sparse(indices, array.shape, array[array != 0], name, array.dtype)


def with_initializer(*tensors, op="Add"):
    """A model of one operator on ``x`` and the sparse initialiser ``w``."""
    model = make_model([helper.make_node(op, ["x", "w"], ["y"])], {"x": (2, 3)}, ["y"])
    model.graph.sparse_initializer.extend(tensors)
    return model


def with_constant(tensor):
    nodes = [
        helper.make_node("Constant", [], ["w"], name="weights", sparse_value=tensor),
        helper.make_node("Add", ["x", "w"], ["y"]),
    ]
    return make_model(nodes, {"x": (2, 3)}, ["y"])


def constants(module):
    found = []
    relax.analysis.post_order_visit(
        module["main"].body,
        lambda e: found.append(e.value.numpy()) if isinstance(e, tvm.ir.GenericConst) else None,
    )
    return found


@pytest.mark.parametrize("indices", [[1, 5], [[0, 1], [1, 2]]], ids=["linear", "coordinates"])
@pytest.mark.parametrize("make", [with_initializer, with_constant])
def test_zeros_are_filled_in(make, indices):
    (got,) = constants(load_model(make(sparse(indices))))
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, WANTED)


@pytest.mark.parametrize("linear", [True, False])
def test_a_sparse_convolution_matches_onnxruntime(linear):
    weight = np.where(normal(5, 3, 3, 3, seed=1) > 0.8, normal(5, 3, 3, 3), 0)
    model = make_model([helper.make_node("Conv", ["x", "w"], ["y"])], {"x": (1, 3, 6, 7)}, ["y"])
    model.graph.sparse_initializer.append(of_dense(weight, linear=linear))
    x = normal(1, 3, 6, 7, seed=2)
    (wanted,) = run_onnxruntime(model, {"x": x})
    got = call(compile_functions({"f": load_model(model)["main"]}), "f", x)
    np.testing.assert_allclose(np.ravel(got), np.ravel(wanted), rtol=1e-5, atol=1e-5)


@given(
    st.lists(st.integers(0, 4), max_size=4).map(tuple),
    st.integers(0, 2**32 - 1),
    st.booleans(),
    st.sampled_from(["float32", "float16", "float64", "int8", "int64"]),
)
def test_any_shape_and_dtype(shape, seed, linear, dtype):
    rng = np.random.default_rng(seed)
    array = np.asarray(rng.integers(-2, 3, shape), dtype)
    got = dense_value(of_dense(array, linear=linear), "it")
    assert (got.shape, got.dtype) == (array.shape, array.dtype)
    np.testing.assert_array_equal(got, array)


def test_an_initializer_without_values_is_all_zero():
    (got,) = constants(load_model(with_initializer(sparse([], values=[]))))
    np.testing.assert_array_equal(got, np.zeros((2, 3)))


def test_params_replace_a_sparse_initializer():
    value = normal(2, 3)
    (got,) = constants(load_model(with_initializer(sparse([1, 5])), params={"w": value}))
    np.testing.assert_array_equal(got, value)


def test_beside_dense_ones_and_operators_that_are_expanded():
    model = with_initializer(sparse([1, 5]))
    model.graph.initializer.append(numpy_helper.from_array(np.full(3, 4, "float32"), "dense"))
    nodes = [
        helper.make_node("Constant", [], ["v"], sparse_value=sparse([0], values=[8.0], name="v")),
        helper.make_node("Sub", ["y", "dense"], ["z"]),
        helper.make_node("Sub", ["z", "v"], ["s"]),
        # The standard defines it by other operators, and there is no converter.
        helper.make_node("MeanVarianceNormalization", ["s"], ["n"], axes=[1]),
    ]
    model.graph.node.extend(nodes)
    model.graph.output[0].name = "n"
    x = normal(2, 3)
    s = (x + WANTED - 4 - np.array([[8, 0, 0], [0, 0, 0]])).astype("float64")
    wanted = (s - s.mean(1, keepdims=True)) / s.std(1, keepdims=True)
    got = call(compile_functions({"f": load_model(model)["main"]}), "f", x)
    np.testing.assert_allclose(np.reshape(got, (2, 3)), wanted, rtol=1e-4, atol=1e-4)


def test_in_the_branch_that_is_taken():
    branch = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["sum"])],
        "branch",
        [],
        [onnx.ValueInfoProto(name="sum")],
        sparse_initializer=[sparse([1, 5])],
    )
    model = make_model(
        [helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)],
        {"x": (2, 3)},
        ["y"],
        {"c": np.array(True)},
    )
    (got,) = constants(load_model(model))
    np.testing.assert_array_equal(got, WANTED)


BAD = {
    "beyond the end": (sparse([1, 6]), r"index 6 at position 1, outside of the shape \[2, 3\]"),
    "negative": (sparse([-1, 5]), "index -1 at position 0, outside"),
    "a column too many": (sparse([[0, 1], [1, 3]]), r"index \[1, 3\] at position 1, outside"),
    "a negative row": (sparse([[-1, 1], [1, 2]]), r"index \[-1, 1\] at position 0, outside"),
    "unsorted": (sparse([5, 1]), "index 1 at position 1, behind 5; indices must rise"),
    "twice": (sparse([1, 1]), "index 1 at position 1, behind 1; .* only once"),
    "unsorted rows": (sparse([[1, 0], [0, 2]]), r"index \[0, 2\] at position 1, behind \[1, 0\]"),
    "twice the same place": (sparse([[1, 0], [1, 0]]), "only once"),
    "too few indices": (sparse([1]), r"indices of shape \[1\]; for 2 values .* \[2\] or \[2, 2\]"),
    "wrong rank": (sparse([[1], [5]]), r"indices of shape \[2, 1\]"),
    "values of two axes": (sparse([1, 5], values=[[1.0, 2.0]]), r"values of shape \[1, 2\]"),
    "negative shape": (sparse([1, 5], dims=(2, -3)), r"the shape \[2, -3\]"),
    "too large": (sparse([1, 5], dims=(2**40, 2**40)), "too large to be made dense"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize(
    ("make", "name"),
    [
        (with_initializer, "the sparse initialiser 'w'"),
        (with_constant, "the sparse value of node 'weights'"),
    ],
)
def test_bad_indices_and_shapes(make, name, case):
    tensor, message = BAD[case]
    with pytest.raises(ModelError, match=f"{name} .*{message}"):
        load_model(make(tensor))


def test_indices_of_another_type():
    tensor = sparse([1, 5])
    tensor.indices.CopyFrom(numpy_helper.from_array(np.array([1, 5], "int32")))
    with pytest.raises(ModelError, match="'w' has indices of type int32; they must be int64"):
        load_model(with_initializer(tensor))


def test_damaged_values():
    tensor = sparse([1, 5])
    tensor.values.raw_data = b"\0\0\0"
    with pytest.raises(ModelError, match="the sparse initialiser 'w' is damaged"):
        load_model(with_initializer(tensor))


def test_strings():
    tensor = sparse([1, 5])
    tensor.values.CopyFrom(helper.make_tensor("w", TensorProto.STRING, [2], [b"a", b"b"]))
    with pytest.raises(ModelError, match="the sparse initialiser 'w' holds strings"):
        load_model(with_initializer(tensor))


def test_data_in_another_file():
    tensor = sparse([1, 5])
    tensor.values.data_location = TensorProto.EXTERNAL
    tensor.values.external_data.add(key="location", value="weights.bin")
    with pytest.raises(ModelError, match="'w' has its data in another file"):
        load_model(with_initializer(tensor))


def test_names():
    with pytest.raises(ModelError, match=r"a sparse initialiser of shape \[2, 3\] has no name"):
        load_model(with_initializer(sparse([1, 5], name="")))
    with pytest.raises(ModelError, match="two initialisers have the name 'w', one of them sparse"):
        load_model(with_initializer(sparse([1, 5]), sparse([1, 5])))
    model = with_initializer(sparse([1, 5]))
    model.graph.initializer.append(numpy_helper.from_array(WANTED, "w"))
    with pytest.raises(ModelError, match="two initialisers have the name 'w'"):
        load_model(model)
