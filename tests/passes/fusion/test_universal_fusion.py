"""Which operators share a group, and that every group is legal."""

import numpy as np
from tvm import relax

from tests.passes.relax_models import array, const, module
from tvm_ext.layers import layers
from tvm_ext.passes import UniversalFusion

W1, W2 = array(0, 4, 4, 3, 3), array(1, 4, 4, 1, 1)
BIAS = array(2, 1, 4, 1, 1)
SHAPE = (1, 4, 6, 6)


def _groups(body, **inputs):
    mod = UniversalFusion()(module(inputs or {"x": SHAPE}, body))
    return [layer.ops for layer in layers(mod)]


def _conv(emit, x, w=W1):
    pad = 1 if w is W1 else 0
    return emit(relax.op.nn.conv2d(x, const(w), padding=pad))


def test_bias_residual_and_activation_join_the_convolution():
    def body(emit, x):
        y = emit(relax.op.add(_conv(emit, x), const(BIAS)))
        return relax.op.nn.relu(emit(relax.op.add(y, x)))

    assert _groups(body) == [("nn.conv2d", "add", "add", "nn.relu")]


def test_swish_reads_its_input_twice_and_still_joins():
    def body(emit, x):
        y = _conv(emit, x)
        return relax.op.multiply(y, emit(relax.op.sigmoid(y)))

    assert _groups(body) == [("nn.conv2d", "sigmoid", "multiply")]


def test_value_read_outside_ends_the_group():
    def body(emit, x):
        y = emit(relax.op.nn.relu(_conv(emit, x)))
        z = _conv(emit, y, W2)
        return relax.op.add(emit(relax.op.tanh(z)), y)

    assert _groups(body) == [("nn.conv2d", "nn.relu"), ("nn.conv2d", "tanh", "add")]


def test_operand_that_depends_on_the_group_would_be_a_cycle():
    def body(emit, x):
        y = _conv(emit, x)
        z = emit(relax.op.nn.max_pool2d(y, pool_size=3, strides=1, padding=1))
        return relax.op.add(y, z)

    assert _groups(body) == [("nn.conv2d",), ("nn.max_pool2d", "add")]


def test_later_branch_takes_the_addition():
    def body(emit, x):
        a = _conv(emit, x)
        b = _conv(emit, x, W2)
        return relax.op.add(a, b)

    groups = _groups(body)
    assert sorted(len(g) for g in groups) == [1, 2]
    assert groups[-1] == ("nn.conv2d", "add")


def test_broadcast_to_a_larger_shape_starts_a_new_group():
    def body(emit, x, y):
        return relax.op.add(_conv(emit, x), y)

    assert _groups(body, x=SHAPE, y=(3, 4, 6, 6)) == [("nn.conv2d",), ("add",)]


def test_scalar_constants_become_part_of_the_step():
    def body(emit, x):
        return relax.op.multiply(_conv(emit, x), relax.const(np.float32(0.5)))

    mod = UniversalFusion()(module({"x": SHAPE}, body))
    (layer,) = layers(mod)
    assert layer.workload.epilogue.operands == ()
    assert layer.workload.epilogue.steps[0].args == (("value", 0), ("const", 0.5))


def test_transcendental_functions_in_a_row_are_cut():
    def body(emit, x):
        y = _conv(emit, x)
        for op in (relax.op.sigmoid, relax.op.tanh, relax.op.nn.gelu, relax.op.erf, relax.op.exp):
            y = emit(op(y))
        return relax.op.nn.relu(y)

    assert _groups(body) == [
        ("nn.conv2d", "sigmoid", "tanh"), ("nn.gelu",), ("erf",), ("exp", "nn.relu"),
    ]  # fmt: skip


def test_transcendental_functions_side_by_side_share_a_group():
    def body(emit, x):
        y = _conv(emit, x)
        parts = [emit(op(y)) for op in (relax.op.sigmoid, relax.op.tanh, relax.op.erf)]
        return relax.op.add(emit(relax.op.multiply(parts[0], parts[1])), parts[2])

    (group,) = _groups(body)
    assert len(group) == 6


def test_mish_is_one_function():
    def body(emit, x):
        y = _conv(emit, x)
        soft = emit(relax.op.nn.softplus(y))
        return relax.op.multiply(y, emit(relax.op.tanh(soft)))

    assert _groups(body) == [("nn.conv2d", "nn.softplus", "tanh", "multiply")]


def test_a_group_ends_in_its_anchors_type():
    def body(emit, x):
        y = emit(relax.op.nn.relu(_conv(emit, x)))
        return relax.op.astype(y, "int32")

    assert _groups(body) == [("nn.conv2d", "nn.relu"), ("astype",)]


def test_other_types_within_a_group_are_fine():
    def body(emit, x):
        y = _conv(emit, x)
        positive = emit(relax.op.greater(y, const(np.float32(0))))
        return relax.op.where(positive, y, const(np.float32(-1)))

    assert _groups(body) == [("nn.conv2d", "greater", "where")]


def test_a_small_tensor_is_computed_within_the_larger():
    def body(emit, x, y):
        return relax.op.add(x, emit(relax.op.nn.relu(y)))

    assert _groups(body, x=(3, 4), y=(1, 4)) == [("nn.relu", "add")]


def test_a_costly_function_of_a_small_tensor_is_computed_once():
    def body(emit, x, y):
        return relax.op.add(x, emit(relax.op.exp(y)))

    assert _groups(body, x=(3, 4), y=(1, 4)) == [("exp",), ("add",)]


def test_reshape_between_steps_of_a_product_is_index_arithmetic():
    def body(emit, x, residual):
        y = emit(relax.op.matmul(x, const(array(0, 8, 16))))
        z = emit(relax.op.reshape(emit(relax.op.add(y, const(array(1, 16)))), (1, 6, 16)))
        return relax.op.add(z, residual)

    groups = _groups(body, x=(6, 8), residual=(1, 6, 16))
    assert groups == [("matmul", "add", "reshape", "add")]


def test_attention_reads_its_heads_in_place():
    def heads(emit, x, begin, axes):
        part = emit(relax.op.strided_slice(x, [2], [begin], [begin + 8]))
        return emit(relax.op.permute_dims(emit(relax.op.reshape(part, (1, 5, 2, 4))), axes))

    def body(emit, x):
        q, k, v = (
            heads(emit, x, begin, axes)
            for begin, axes in ((0, (0, 2, 1, 3)), (8, (0, 2, 3, 1)), (16, (0, 2, 1, 3)))
        )
        scores = emit(relax.op.nn.softmax(emit(relax.op.matmul(q, k))))
        out = emit(relax.op.permute_dims(emit(relax.op.matmul(scores, v)), (0, 2, 1, 3)))
        return relax.op.nn.relu(emit(relax.op.reshape(out, (1, 5, 8))))

    split = ("strided_slice", "reshape", "permute_dims")
    assert _groups(body, x=(1, 5, 24)) == [
        (*split, *split, *split, "matmul", "nn.softmax", "matmul", "permute_dims", "reshape",
         "nn.relu"),
    ]  # fmt: skip


def test_a_move_that_others_read_too_stays_outside():
    def body(emit, x, y):
        t = emit(relax.op.permute_dims(x, (0, 2, 1)))
        z = emit(relax.op.matmul(t, y))
        return relax.op.concat(
            [emit(relax.op.reshape(z, (2, 12))), relax.op.reshape(t, (2, 12))], 1
        )

    groups = _groups(body, x=(2, 3, 4), y=(2, 3, 3))
    assert ("permute_dims",) in groups
    assert ("matmul",) in groups


def test_the_bias_stays_with_its_product_and_heads_with_their_reader():
    def body(emit, x, y):
        biased = emit(
            relax.op.add(emit(relax.op.matmul(x, const(array(0, 8, 8)))), const(array(1, 8)))
        )
        heads = emit(relax.op.permute_dims(emit(relax.op.reshape(biased, (5, 2, 4))), (1, 0, 2)))
        return relax.op.matmul(heads, y)

    assert _groups(body, x=(5, 8), y=(2, 4, 3)) == [
        ("matmul", "add"), ("reshape", "permute_dims", "matmul"),
    ]  # fmt: skip
