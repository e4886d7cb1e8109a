"""Random instructions and programs for hypothesis."""

from hypothesis import strategies as st

from tests.codegen.streams import HARDWARE
from tvm_ext.codegen.isa import DEFINITIONS, TOKENS, Instruction, Unit, instruction, registers_of
from tvm_ext.codegen.program import Buffer, Layer, Program


@st.composite
def instructions(draw, without=()):
    """Any instruction with any fields and tokens."""
    mnemonic = draw(st.sampled_from([name for name in DEFINITIONS if name not in without]))
    tokens = {token: draw(st.booleans()) for token in TOKENS}
    if mnemonic == "OP_SET":
        return Instruction(mnemonic, draw(register_writes()), **tokens)
    values = tuple(
        draw(st.integers(0, 2**field.bits - 1)) for field in DEFINITIONS[mnemonic].fields
    )
    return Instruction(mnemonic, values, **tokens)


@st.composite
def register_writes(draw):
    """Fields of an OP_SET: every unit, register and value that it may have."""
    unit = draw(st.sampled_from(Unit))
    register = draw(st.sampled_from(list(registers_of(unit).values())))
    values = {
        "u32": st.integers(0, 2**32 - 1),
        "i8": st.integers(-128, 127),
        "f32": st.floats(width=32, allow_nan=False, allow_infinity=False),
    }
    return int(unit), register.number, register.bits(draw(values[register.kind]))


NAMES = st.text(
    st.characters(exclude_categories=["C", "Z"], include_characters=' ";\\'), max_size=9
)


@st.composite
def programs(draw):
    """Programs that need make no sense, with names, buffers, layers and constants."""
    items = draw(st.lists(instructions(without=("OP_END",)), max_size=12))
    layers = draw(st.lists(st.builds(Layer, NAMES, NAMES), max_size=3))
    tags = [draw(st.integers(-1, len(layers) - 1)) for _ in range(len(items) + 1)]
    constants = draw(st.binary(max_size=200))
    buffers, end = [], len(constants)
    for name in draw(st.lists(NAMES, max_size=3, unique=True)):
        shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)))
        role = draw(st.sampled_from(["input", "output", "spill"]))
        buffers.append(Buffer(name, role, end, shape, draw(st.sampled_from(["int8", "int32"]))))
        end = buffers[-1].end
    return Program(
        draw(st.sampled_from([HARDWARE.variant, 'other "x"; y'])),
        (*items, instruction("OP_END", push_prev=draw(st.booleans()))),
        end + draw(st.integers(0, 9)),
        constants,
        tuple(buffers),
        tuple(layers),
        tuple(tags),
    )
