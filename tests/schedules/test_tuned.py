"""The algorithm that a measured trace makes of a tensor program."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.relax_models import array
from tests.schedules.kernels import HOST
from tests.transfer.programs import conv, conv_layer, numpy_conv, run
from tvm_ext.schedules import algorithms
from tvm_ext.schedules.tuned import Tuned, first_line, trace_text
from tvm_ext.transfer.trace_template import TraceTemplate
from tvm_ext.transfer.tune_space import tune_context

PROGRAM = conv(8, 16, 8, 3)
FUNCTION = PROGRAM.workload.function
SKETCH = tune_context(FUNCTION, HOST).generate_design_space()[-1]
TRACE = trace_text(TraceTemplate.of(SKETCH.trace, FUNCTION).apply(FUNCTION, HOST).trace)


def check(**params: object) -> str:
    return Tuned().check(PROGRAM.workload, params, HOST)


def test_the_planner_never_offers_it() -> None:
    assert "tuned" not in algorithms(conv_layer().workload)
    assert list(algorithms(PROGRAM.workload)) == ["tuned"]
    assert Tuned().layouts(PROGRAM.workload, HOST) == ((0, 0),)


def test_the_kernel_is_scheduled_and_right() -> None:
    params = {"record": "0123456789ab", "trace": TRACE}
    assert check(**params) == ""
    kernel = Tuned().kernel(PROGRAM.workload, params, HOST, (0, 0))
    assert "T.parallel" in kernel.script()
    assert "T.vectorized" in kernel.script()
    x, packed = (
        array(0, 1, 8, 8, 8),
        Tuned().pack(PROGRAM.workload, params, HOST, PROGRAM.constants),
    )
    expected = numpy_conv(x, packed[0], 1, 1, ("add", "relu"), packed[1])
    np.testing.assert_allclose(
        run(kernel, [x, *packed], expected.shape), expected, rtol=1e-4, atol=1e-4
    )


def test_without_a_record_it_is_the_unscheduled_program() -> None:
    params = Tuned().default(PROGRAM.workload, HOST)
    assert check(**params) == ""
    assert "T.parallel" not in Tuned().kernel(PROGRAM.workload, params, HOST, (0, 0)).script()
    assert Tuned().cost(PROGRAM.workload, params, HOST) > 0


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"record": "a", "trace": TRACE, "tile": 4}, "has no parameter 'tile'; allowed: record"),
        ({"record": "a"}, r"tuned\.trace = None is not a text"),
        ({"record": 5, "trace": TRACE}, r"tuned\.record = 5 is not a text"),
        ({"record": "a", "trace": "no"}, r"tuned\.trace doesn't fit: Expecting value"),
        ({"record": "a", "trace": "{}"}, "a list of instructions and a list of decisions"),
        ({"record": "a", "trace": '[[["Fly",[],[],[]]],[]]'}, "Instruction kind Fly is not"),
        (
            {"record": "a", "trace": '[[["GetSBlock",[],["pool","main"],["b0"]]],[]]'},
            "doesn't fit: Cannot find a block with the name: pool",
        ),
        (
            {
                "record": "a",
                "trace": '[[["GetSBlock",[],["conv2d_nchw","main"],["b0"]],'
                '["ComputeInline",["b0"],[],[]]],[]]',
            },
            "doesn't fit: ScheduleError: The block has init statement",
        ),
    ],
)
def test_what_does_not_fit_is_named(params: dict[str, object], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        assert check(**params) == ""


def test_first_line_of_an_empty_error() -> None:
    assert first_line(ValueError()) == "ValueError"
    assert first_line(ValueError("\n  one\ntwo")) == "one"
