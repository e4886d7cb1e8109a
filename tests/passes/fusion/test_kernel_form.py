"""What one kernel computes for a group: NumPy evaluates the form, and the graph itself."""

import numpy as np
import pytest
from tvm.relax import op

from tests.passes.relax_models import array, const, enlarged, module
from tests.schedules.strided import seen
from tvm_ext.passes import dataflow as df
from tvm_ext.passes.fusion.kernel_form import kernel_form
from tvm_ext.passes.fusion.kernel_parts import NoKernel

STEPS = {
    "add": np.add, "multiply": np.multiply, "subtract": np.subtract, "negative": np.negative,
    "relu": lambda x: np.maximum(x, 0),
}  # fmt: skip


def _form(body, **shapes):
    pairs = df.bindings(module(shapes, body)["main"])
    return kernel_form([(v, e) for v, e in pairs if df.op_name(e)])


def _evaluate(form, inputs):
    """The form's result by NumPy alone."""
    values = []
    if form.anchor is not None:
        left, right = (seen(_value(s.expr, inputs), s.view) for s in form.inputs)
        values.append(left @ right)
    operands = [
        seen(_value(x, inputs), o.view)
        if o.view
        else _repeat(np.asarray(_value(x, inputs)).reshape(o.shape), o.repeat)
        for x, o in zip(form.operands, form.epilogue.operands, strict=True)
    ]
    for step in form.epilogue.steps:
        args = [
            {"value": values, "operand": operands}[kind][x] if kind != "const" else x
            for kind, x in step.args
        ]
        values.append(STEPS[step.op](*args))
    out = np.full(int(np.prod(form.out_shape)), np.nan, "float32")
    seen(out, form.out)[...] = values[-1]
    return out.reshape(form.out_shape)


def _repeat(array, factors):
    for axis, factor in enumerate(factors):
        array = array.repeat(factor, axis)
    return array


def _value(expr, inputs):
    constant = df.value_of(expr)
    return inputs[expr.name] if constant is None else constant


def _strip(x):
    return op.strided_slice(x, [1], [1], [3])


CASES = {
    "steps between moves": (
        lambda emit, x, y: op.add(
            emit(op.permute_dims(emit(op.multiply(x, x)), (1, 0, 2))), emit(op.negative(y))
        ),
        lambda x, y: (x * x).transpose(1, 0, 2) - y,
        {"x": (2, 3, 4), "y": (3, 2, 4)},
    ),
    "one value in two orders": (
        lambda emit, x: op.add(
            emit(op.reshape(x, (2, 3, 4))), emit(op.reshape(emit(op.flip(x, 0)), (2, 3, 4)))
        ),
        lambda x: x.reshape(2, 3, 4) + x[::-1].reshape(2, 3, 4),
        {"x": (2, 12)},
    ),
    "part of a row, broadcast": (
        lambda emit, x, y: op.subtract(y, emit(op.nn.relu(emit(_strip(x))))),
        lambda x, y: y - np.maximum(x[:, 1:3], 0),
        {"x": (1, 4), "y": (5, 2)},
    ),
    "enlarged twice, with steps between": (
        lambda emit, x, y: op.add(
            y, enlarged(emit, emit(op.nn.relu(enlarged(emit, x, 2, 1))), 1, 3)
        ),
        lambda x, y: y + np.maximum(x, 0).repeat(2, axis=2).repeat(3, axis=3),
        {"x": (2, 3, 2, 4), "y": (2, 3, 4, 12)},
    ),
    "enlarged from one row, and broadcast": (
        lambda emit, x, y: op.subtract(y, enlarged(emit, x, 4, 2)),
        lambda x, y: y - x.repeat(4, axis=2).repeat(2, axis=3),
        {"x": (1, 3, 1, 3), "y": (2, 3, 4, 6)},
    ),
    "product of moved operands": (
        lambda emit, x, y: op.matmul(
            emit(op.permute_dims(x, (1, 0, 2))), emit(op.permute_dims(y, (1, 2, 0)))
        ),
        lambda x, y: x.transpose(1, 0, 2) @ y.transpose(1, 2, 0),
        {"x": (5, 2, 4), "y": (6, 2, 4)},
    ),
    "product stored in another order, with a residual": (
        lambda emit, x, y, z: op.add(
            emit(op.reshape(emit(op.permute_dims(emit(op.matmul(x, y)), (1, 0, 2))), (5, 12))), z
        ),
        lambda x, y, z: (x @ y).transpose(1, 0, 2).reshape(5, 12) + z,
        {"x": (2, 5, 4), "y": (2, 4, 6), "z": (5, 1)},
    ),
    "bias before a reshape, residual behind": (
        lambda emit, x, z: op.add(
            emit(
                op.reshape(
                    emit(op.add(emit(op.matmul(x, const(array(0, 4, 6)))), const(array(1, 6)))),
                    (1, 5, 6),
                )
            ),
            z,
        ),
        lambda x, z: (x @ array(0, 4, 6) + array(1, 6))[None] + z,
        {"x": (5, 4), "z": (1, 5, 6)},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_form_computes_what_the_graph_does(name):
    body, expected, shapes = CASES[name]
    inputs = {n: array(i, *s) for i, (n, s) in enumerate(shapes.items())}
    form = _form(body, **shapes)
    np.testing.assert_allclose(_evaluate(form, inputs), expected(**inputs), rtol=1e-5, atol=1e-5)


def test_values_read_alike_are_one_operand_and_one_step():
    def body(emit, x):
        y = emit(op.nn.relu(x))
        return op.add(emit(op.multiply(y, x)), y)

    form = _form(body, x=(3, 4))
    assert len(form.epilogue.operands) == 1
    assert [s.op for s in form.epilogue.steps] == ["relu", "multiply", "add"]


W = array(0, 4, 4, 3, 3)
REFUSED = {
    "two anchors": (
        lambda emit, x: op.nn.softmax(emit(op.nn.softmax(x))),
        "nn.softmax and nn.softmax have kernels of their own",
    ),
    "steps before the anchor": (
        lambda emit, x: op.nn.softmax(emit(op.nn.relu(x))), "is computed before its anchor",
    ),
    "only moves": (
        lambda emit, x: op.flatten(emit(op.squeeze(x))), "it only moves elements",
    ),
    "part of a result": (
        lambda emit, x: op.strided_slice(emit(op.nn.softmax(x)), [1], [0], [2]),
        "store a part of the result",
    ),
    "result in two orders": (
        lambda emit, x: op.add(
            *(lambda y: (y, emit(op.flip(y, 0))))(emit(op.nn.softmax(x)))
        ),
        "at other positions",
    ),
    "other type": (
        lambda emit, x: op.astype(emit(op.nn.softmax(x)), "float16"), "stores float32, not float16",
    ),
    "broadcast result": (
        lambda emit, x: op.add(emit(op.nn.softmax(x)), const(array(0, 2, 6, 4, 6, 6))),
        "its result is broadcast",
    ),
    "neighbours apart": (
        lambda emit, x: op.nn.relu(emit(op.permute_dims(x))), "neighbours lie apart",
    ),
    "enlarged result": (
        lambda emit, x: enlarged(emit, emit(op.nn.conv2d(x, const(W))), 2, 2),
        "or elements twice",
    ),
    "enlarged input of groups": (
        lambda emit, x: op.nn.conv2d(
            enlarged(emit, x, 2, 2), const(array(0, 4, 2, 3, 3)), groups=2
        ),
        "image.resize2d and nn.conv2d have kernels of their own",
    ),
    "part of an enlarged value": (
        lambda emit, x: op.nn.relu(
            emit(op.strided_slice(enlarged(emit, x, 2, 2), [2], [0], [3]))
        ),
        "has no strides",
    ),
    "rows and an enlarged value": (
        lambda emit, x: op.add(
            emit(op.nn.softmax(const(array(0, 6, 4, 12, 12)))), enlarged(emit, x, 2, 2)
        ),
        "a kernel of rows reads no operand several times",
    ),
    "costly and small": (
        lambda emit, x: op.add(
            x, emit(op.exp(emit(op.strided_slice(x, [1], [0], [1]))))
        ),
        "would be computed many times",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_no_kernel_says_why(name):
    body, reason = REFUSED[name]
    with pytest.raises(NoKernel, match=reason):
        _form(body, x=(6, 4, 6, 6))


def test_pool_behind_a_convolution_is_its_last_stage():
    def body(emit, x):
        y = emit(op.nn.relu(emit(op.nn.conv2d(x, const(W)))))
        return op.nn.max_pool2d(y, (2, 2), (2, 2))

    form = _form(body, x=(1, 4, 8, 8))
    assert df.op_name(form.pool) == "relax.nn.max_pool2d"
    assert [step.op for step in form.epilogue.steps] == ["relu"]


def test_a_product_reads_a_residual_in_its_own_order_only():
    def body(emit, x, y, z):
        heads = emit(op.permute_dims(emit(op.matmul(x, y)), (1, 0, 2)))
        return op.add(emit(op.reshape(heads, (5, 12))), z)

    with pytest.raises(NoKernel, match="reads its operands in order"):
        _form(body, x=(2, 5, 4), y=(2, 4, 6), z=(5, 12))


def test_a_result_of_more_dimensions_that_does_not_need_the_product():
    def body(emit, x):
        emit(op.matmul(x, emit(op.permute_dims(x))))
        return op.reshape(x, (1, 1, 8))

    with pytest.raises(NoKernel, match="isn't part of the result"):
        _form(body, x=(1, 8))
