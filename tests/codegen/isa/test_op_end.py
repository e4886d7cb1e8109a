"""OP_END: where it may be, and that it costs nothing."""

import pytest

from tests.codegen.streams import HARDWARE, read, run
from tvm_ext.codegen.errors import ProgramError
from tvm_ext.codegen.isa import instruction
from tvm_ext.codegen.program import Program

END = instruction("OP_END")


@pytest.mark.parametrize("items", [(), (read(),), (END, read()), (END, END)])
def test_it_is_the_last_instruction_and_only_that(items):
    with pytest.raises(ProgramError, match="allowed: once, as the last one"):
        Program(HARDWARE.variant, items, 4096)


def test_a_program_of_nothing_takes_no_time():
    result, _ = run()
    assert (result.cycles, result.macs, result.utilization) == (0, 0, 0.0)


def test_the_program_lasts_until_every_unit_stops():
    result, _ = run(read())
    assert result.cycles == 64 + 4
