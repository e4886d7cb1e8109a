"""Kernels and bytes of graphs that are worked by hand."""

from passes.relax_models import array, const, module
from tvm import relax

from tvm_ext.program_builder import ProgramBuilder
from tvm_ext.viz.fused_layers import FusedLayers, called_layers, fused_layers, operators

# float32
BYTES = 4


def test_every_value_counts_once_and_views_share_it():
    """relu writes 24 elements, read by exp through a view and by tanh; exp writes 24, read once."""

    def body(emit, x):
        y = emit(relax.op.nn.relu(x))
        z = emit(relax.op.exp(emit(relax.op.reshape(y, (24,)))))
        return relax.op.add(emit(relax.op.reshape(z, (4, 6))), emit(relax.op.tanh(y)))

    mod = module({"x": (4, 6)}, body)
    assert operators(mod) == 6
    # relu, exp, tanh, add; add's result is the model's.
    assert fused_layers(mod) == FusedLayers(4, 3 * 24 * BYTES)


def test_outputs_are_not_between_layers_even_if_read():
    def body(emit, x):
        y = emit(relax.op.nn.relu(x))
        return relax.Tuple([emit(relax.op.reshape(y, (24,))), emit(relax.op.exp(y))])

    assert fused_layers(module({"x": (4, 6)}, body)) == FusedLayers(2, 0)


def test_fields_of_tuples_count_where_they_are_read():
    def body(emit, x):
        parts = emit(relax.op.split(x, [2], axis=1))
        return relax.op.exp(emit(relax.TupleGetItem(parts, 0)))

    assert fused_layers(module({"x": (4, 6)}, body)) == FusedLayers(2, 4 * 2 * BYTES)


def test_what_follows_from_weights_is_no_kernel():
    def body(emit, x):
        w = emit(relax.op.exp(const(array(0, 4, 6))))
        return relax.op.add(x, emit(relax.op.tanh(w)))

    assert fused_layers(module({"x": (4, 6)}, body)) == FusedLayers(1, 0)


def test_a_group_of_views_is_a_view_and_a_mixed_one_is_not():
    builder = relax.BlockBuilder()

    def group(name, shape, body):
        p = relax.Var("p", relax.TensorType(list(shape), "float16"))
        with builder.function(name, [p], attrs={"Primitive": True}, private=True):
            with builder.dataflow():
                output = builder.emit_output(body(p))
            builder.emit_func_output(output)
        return builder.get().get_global_var(name)

    emit = builder.emit
    views = group(
        "views", (4, 6), lambda p: emit(relax.op.expand_dims(emit(relax.op.flatten(p)), 0))
    )
    mixed = group("mixed", (4, 6), lambda p: emit(relax.op.reshape(emit(relax.op.exp(p)), (4, 6))))
    x = relax.Var("x", relax.TensorType([4, 6], "float16"))
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit(relax.Call(mixed, [builder.emit(relax.Call(mixed, [x]))]))
            output = builder.emit_output(builder.emit(relax.Call(views, [y])))
        builder.emit_func_output(output)
    assert fused_layers(builder.get()) == FusedLayers(2, 24 * 2)


def test_calls_count_what_they_leave_for_later_ones():
    """Parts of a joint buffer count where they are written, the joint one not again."""
    builder = ProgramBuilder()
    x = builder.input("x", (32,), "float32")
    a, b, unread, copy, y = (builder.buffer((n,), "float32") for n in (16, 32, 8, 48, 48))
    builder.call("k", [x, a], 1, "a")
    builder.call("k", [x, b, unread], 2, "b")
    whole, _ = builder.join([a, b], (48,), "float32")
    builder.call("k", [whole, copy], 1, "copy")
    builder.call("k", [builder.view(copy, (4, 12)), y], 1, "y")
    builder.program.outputs = {"y": y}
    assert called_layers(builder.program) == FusedLayers(4, (16 + 32 + 48) * BYTES)


def test_memory_that_is_written_again_counts_again_and_outputs_do_not():
    builder = ProgramBuilder()
    x = builder.input("x", (16,), "float32")
    a, y, z = (builder.buffer((16,), "float32") for _ in range(3))
    for _ in range(2):
        builder.call("k", [x, a], 1, "a")
        builder.call("k", [a, y], 1, "y")
    builder.call("k", [y, z], 1, "z")
    builder.program.outputs = {"y": y, "z": z}
    assert called_layers(builder.program) == FusedLayers(5, 2 * 16 * BYTES)


def test_the_other_part_of_a_buffer_is_not_what_a_call_wrote():
    builder = ProgramBuilder()
    whole, y = builder.buffer((32,), "float32"), builder.buffer((16,), "float32")
    first, second = (builder.view(whole, (16,), offset) for offset in (0, 64))
    builder.call("k", [first], 1, "first")
    builder.call("k", [second, y], 1, "y")
    assert called_layers(builder.program) == FusedLayers(2, 0)
