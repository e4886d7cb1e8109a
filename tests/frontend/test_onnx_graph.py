"""The importer around the converters: names, weights, folding, branches, functions, memory."""

import numpy as np
import onnx
import pytest
import tvm
from onnx import TensorProto, helper, numpy_helper
from tvm import relax

from tvm_ext.frontend import load_model

from .cases import call, calls, compile_functions, normal
from .models import make_model


def node(op, inputs, outputs, name=None, **attrs):
    return helper.make_node(op, inputs, outputs, name=name, **attrs)


def run(module, *args):
    return call(compile_functions({"f": module["main"]}), "f", *args)


def params(module):
    return {p.name: tuple(int(d) for d in p.ty.shape) for p in module["main"].params}


def constants(module):
    found = []
    relax.analysis.post_order_visit(
        module["main"].body,
        lambda e: found.append(e.value.numpy()) if isinstance(e, tvm.ir.GenericConst) else None,
    )
    return found


def test_names_order_and_attributes_follow_the_model():
    model = make_model(
        [node("Sub", ["z.in/1", "a b"], ["d:0"]), node("Relu", ["d:0"], ["r/1"])],
        {"z.in/1": (2, 3), "unused": (4,), "a b": (3,)},
        ["r/1", "d:0"],
    )
    module = load_model(model)
    assert [v.name_hint for v in module.get_global_vars()] == ["main"]
    assert list(params(module)) == ["z.in/1", "unused", "a b"]
    assert list(module["main"].attrs["tvm_ext.output_names"]) == ["r/1", "d:0"]
    z, a = normal(2, 3), normal(3, seed=1)
    got = run(module, z, np.zeros(4, "float32"), a)
    np.testing.assert_array_equal(got[0], np.maximum(z - a, 0))
    np.testing.assert_array_equal(got[1], z - a)


def test_shape_arithmetic_leaves_one_reshape():
    model = make_model(
        [
            node("Shape", ["x"], ["shape"]),
            node("Gather", ["shape", "zero"], ["batch"]),
            node("Unsqueeze", ["batch", "axes"], ["batch1"]),
            node("Concat", ["batch1", "rest"], ["target"], axis=0),
            node("Reshape", ["x", "target"], ["y"]),
        ],
        {"x": ("n", 3, 4)},
        ["y"],
        {"zero": np.array(0), "axes": np.array([0]), "rest": np.array([-1])},
    )
    module = load_model(model, {"x": (2, 3, 4)})
    assert calls(module) == ["relax.reshape"]
    assert [int(d) for d in module["main"].ret_ty.shape] == [2, 12]


@pytest.mark.parametrize(("attrs", "wanted"), [({}, 24), ({"start": 1}, 12), ({"end": -1}, 6)])
def test_shape_of_a_part_is_known(attrs, wanted):
    model = make_model(
        [
            node("Shape", ["x"], ["shape"], **attrs),
            node("ReduceProd", ["shape"], ["size"], keepdims=0),
            node("Cast", ["size"], ["number"], to=TensorProto.FLOAT),
            node("Mul", ["x", "number"], ["y"]),
        ],
        {"x": (2, 3, 4)},
        ["y"],
    )
    module = load_model(model)
    assert calls(module) == ["relax.multiply"]
    assert [float(c) for c in constants(module)] == [wanted]


def test_size_and_constant_of_shape_are_known():
    fill = numpy_helper.from_array(np.array([2.5], "float32"))
    model = make_model(
        [
            node("Size", ["x"], ["size"]),
            node("Unsqueeze", ["size", "axes"], ["shape"]),
            node("ConstantOfShape", ["shape"], ["filled"], value=fill),
            node("Flatten", ["x"], ["row"], axis=0),
            node("Add", ["row", "filled"], ["y"]),
        ],
        {"x": (2, 3)},
        ["y"],
        {"axes": np.array([0])},
    )
    np.testing.assert_array_equal(constants(load_model(model))[0], np.full(6, 2.5, "float32"))


@pytest.mark.parametrize("condition", [True, False])
def test_a_branch_with_a_known_condition_is_inlined(condition):
    def branch(name, op):
        return helper.make_graph(
            [node(op, ["x", "w"], ["inner"])],
            name,
            [],
            [onnx.ValueInfoProto(name="inner")],
            [numpy_helper.from_array(np.full(3, 2, "float32"), "w")],
        )

    model = make_model(
        [
            node(
                "If", ["c"], ["y"], then_branch=branch("t", "Add"), else_branch=branch("e", "Mul")
            ),
            node("Relu", ["y"], ["z"]),
        ],
        {"x": (3,)},
        ["z"],
        {"c": np.array(condition)},
    )
    module = load_model(model)
    assert calls(module) == ["relax.add" if condition else "relax.multiply", "relax.nn.relu"]


def test_a_weight_is_kept_until_its_last_reader():
    weight = normal(3)
    model = make_model(
        [
            node("Add", ["x", "w"], ["a"]),
            node("Mul", ["a", "w"], ["b"]),
            node("Sub", ["b", "w"], ["y"]),
        ],
        {"x": (3,)},
        ["y", "w"],
        {"w": weight},
    )
    module = load_model(model)
    x = normal(3, seed=1)
    y, same = run(module, x)
    np.testing.assert_allclose(y, (x + weight) * weight - weight, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(same, weight)


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "int64", "uint8", "bool"])
@pytest.mark.parametrize("shape", [(), (0,), (3, 300), (2, 3, 4)])
def test_constants_of_every_dtype_arrive_unchanged(dtype, shape):
    value = (np.random.default_rng(0).normal(size=shape) * 50).astype(dtype)
    model = make_model(
        [node("Identity", ["w"], ["v"]), node("Relu", ["x"], ["y"])],
        {"x": (1,)},
        ["v", "y"],
        {"w": value},
    )
    (got,) = constants(load_model(model))
    assert got.dtype == value.dtype
    np.testing.assert_array_equal(got, value)


@pytest.mark.parametrize("shape", [(255, 257), (256, 256), (1, 700), (513, 3)])
def test_transposed_weights_are_copied_whole(shape):
    weight = normal(*shape)
    model = make_model(
        [node("Gemm", ["x", "w"], ["y"], transB=1)], {"x": (1, shape[1])}, ["y"], {"w": weight}
    )
    np.testing.assert_array_equal(constants(load_model(model))[0], weight.T)
