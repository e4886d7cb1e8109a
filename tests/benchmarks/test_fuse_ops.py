"""FuseOps on graphs whose fusion is known: which operators share a kernel."""

import pytest
from passes.relax_models import array, const, module, ops
from tvm import relax

from benchmarks import fuse_ops
from tvm_ext.passes import dataflow as df
from tvm_ext.viz.fused_layers import FusedLayers

SHAPE = (1, 4, 6, 6)


def _conv(emit, x, seed=0):
    return emit(relax.op.nn.conv2d(x, const(array(seed, 4, 4, 3, 3)), padding=1))


def _groups(body, **inputs):
    """The operators of each group; tuples and aliases left out."""
    mod = module(inputs or {"x": SHAPE}, body)
    pairs = df.bindings(mod["main"])
    names = [
        [df.op_name(pairs[i][1]).removeprefix("relax.") for i in group]
        for group in fuse_ops.partition(mod)
    ]
    assert sorted(i for g in fuse_ops.partition(mod) for i in g) == list(range(len(pairs)))
    assert sorted(n for group in names for n in group if n) == sorted(ops(mod))
    return [[n for n in group if n] for group in names if any(group)]


def test_bias_and_activation_join_the_convolution():
    def body(emit, x):
        y = emit(relax.op.add(_conv(emit, x), const(array(1, 1, 4, 1, 1))))
        return relax.op.nn.relu(y)

    assert _groups(body) == [["nn.conv2d", "add", "nn.relu"]]


def test_a_value_with_two_kernels_to_read_it_is_written():
    def body(emit, x):
        y = emit(relax.op.nn.relu(x))
        return relax.Tuple([_conv(emit, y), emit(relax.op.nn.softmax(y))])

    assert _groups(body) == [["nn.relu"], ["nn.conv2d"], ["nn.softmax"]]


def test_branches_that_meet_again_are_one_kernel():
    def body(emit, x):
        y = _conv(emit, x)
        return relax.op.multiply(y, emit(relax.op.sigmoid(y)))

    assert _groups(body) == [["nn.conv2d", "sigmoid", "multiply"]]


def test_an_injective_chain_is_one_kernel():
    def body(emit, x):
        y = emit(relax.op.reshape(x, (1, 4, 36)))
        y = emit(relax.op.permute_dims(y, (0, 2, 1)))
        return relax.op.exp(emit(relax.op.concat([y, y], axis=1)))

    assert _groups(body) == [["reshape", "permute_dims", "concat", "exp"]]


def test_injective_operators_after_a_convolution_stay_out():
    def body(emit, x):
        return relax.op.permute_dims(emit(relax.op.nn.relu(_conv(emit, x))), (0, 2, 3, 1))

    assert _groups(body) == [["nn.conv2d", "nn.relu"], ["permute_dims"]]


def test_equal_operators_are_told_apart():
    def body(emit, x):
        y = emit(relax.op.nn.relu(_conv(emit, x)))
        z = emit(relax.op.nn.relu(_conv(emit, y)))
        return relax.op.add(y, z)

    assert _groups(body) == [["nn.conv2d", "nn.relu"], ["nn.conv2d", "nn.relu", "add"]]


def test_a_tuple_taken_apart_inside_a_kernel():
    def body(emit, x):
        parts = emit(relax.op.split(x, 2, axis=1))
        first, second = (emit(relax.TupleGetItem(parts, i)) for i in (0, 1))
        return relax.op.add(emit(relax.op.exp(first)), second)

    mod = module({"x": SHAPE}, body)
    # split, its two fields, exp, add; and the alias that names the output.
    assert fuse_ops.partition(mod)[0] == [0, 1, 2, 3, 4]


def test_an_operator_that_gets_lost_is_an_error(monkeypatch):
    mod = module({"x": SHAPE}, lambda emit, x: relax.op.exp(emit(relax.op.nn.relu(x))))
    legalised = fuse_ops._legalised(mod)
    monkeypatch.setattr(fuse_ops, "_legalised", lambda _: legalised)
    with pytest.raises(RuntimeError, match="binding_0 is lost in TVM's operators"):
        fuse_ops.partition(mod)


def test_counts_of_a_batch_norm_and_a_reshape():
    """Batch norm and relu join the convolution, the reshape is a view, softmax another kernel."""

    def body(emit, x):
        statistics = [const(abs(array(i, 4))) for i in range(4)]
        y = emit(relax.op.nn.batch_norm(_conv(emit, x), *statistics, axis=1, training=False))
        y = emit(relax.op.nn.relu(emit(relax.TupleGetItem(y, 0))))
        return relax.op.nn.softmax(emit(relax.op.reshape(y, (1, 144))))

    assert fuse_ops.tvm_fused_layers(module({"x": SHAPE}, body)) == FusedLayers(2, 144 * 4)


def test_a_reshape_inside_a_kernel_is_none_of_its_own():
    def body(emit, x):
        y = emit(relax.op.reshape(emit(relax.op.nn.softmax(x)), (1, 144)))
        return relax.op.nn.softmax(emit(relax.op.exp(y)))

    # softmax; reshape and exp; softmax
    assert fuse_ops.tvm_fused_layers(module({"x": SHAPE}, body)) == FusedLayers(3, 2 * 144 * 4)


def test_a_slice_from_the_start_is_a_kernel():
    def body(emit, x):
        return relax.op.nn.softmax(emit(relax.op.strided_slice(x, [1], [0], [2])))

    assert fuse_ops.tvm_fused_layers(module({"x": SHAPE}, body)) == FusedLayers(2, 72 * 4)
