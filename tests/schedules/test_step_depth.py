"""The longest way through the steps, counted by hand."""

from __future__ import annotations

from tvm_ext.schedules.epilogue import Epilogue, Step
from tvm_ext.schedules.step_depth import deepest

# tanh(x), tanh(tanh(x)), their sum, and one that reads the kernel's result again.
STEPS = (
    Step("tanh", (("value", 0),)),
    Step("tanh", (("value", 1),)),
    Step("add", (("value", 1), ("value", 2))),
    Step("exp", (("value", 0),)),
)


def test_the_heaviest_way() -> None:
    weights = {"tanh": 1, "add": 0, "exp": 1}
    assert deepest(Epilogue(STEPS), lambda i: weights[STEPS[i].op]) == 2
    assert deepest(Epilogue(STEPS), lambda _: 1) == 3
    assert deepest(Epilogue(STEPS), lambda i: 5 if STEPS[i].op == "exp" else 1) == 5


def test_without_results_and_without_steps() -> None:
    steps = (Step("tanh", (("operand", 0),)), Step("tanh", (("value", 0),)))
    assert deepest(Epilogue(steps, (), 0), lambda _: 1) == 2
    assert deepest(Epilogue(), lambda _: 1) == 0
