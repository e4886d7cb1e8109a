"""Which moves leave a group: those that are views of a whole tensor for everybody."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tvm.relax import op

from tests.passes.relax_models import module
from tvm_ext.passes.fusion.operators import operators
from tvm_ext.passes.fusion.trimming import trim


def _kept(body: Callable[..., Any], **inputs: tuple[int, ...]) -> list[str]:
    """What is left of a group of everything that `body` does."""
    group = operators(module(inputs, body)["main"])
    # The function's result is a binding of its own, of no operator.
    group = [operator for operator in group if operator.static]
    return [operator.expr.op.name.removeprefix("relax.") for operator in trim(group)]


CASES: dict[str, tuple[Callable[..., Any], list[str]]] = {
    "a reshape behind": (lambda emit, x: op.reshape(emit(op.nn.relu(x)), (6, 4)), ["nn.relu"]),
    "a reshape before": (lambda emit, x: op.nn.relu(emit(op.reshape(x, (6, 4)))), ["nn.relu"]),
    "both": (
        lambda emit, x: op.flatten(emit(op.nn.relu(emit(op.reshape(x, (6, 4)))))), ["nn.relu"]
    ),
    "two reshapes behind": (
        lambda emit, x: op.flatten(emit(op.reshape(emit(op.nn.relu(x)), (6, 4)))), ["nn.relu"]
    ),
    "transposed there and back": (
        lambda emit, x: op.nn.relu(emit(op.permute_dims(emit(op.permute_dims(x))))), ["nn.relu"]
    ),
    "a transposition before": (
        lambda emit, x: op.nn.relu(emit(op.permute_dims(x))), ["permute_dims", "nn.relu"]
    ),
    "a transposition behind": (
        lambda emit, x: op.permute_dims(emit(op.nn.relu(x))), ["nn.relu", "permute_dims"]
    ),
    "a slice before": (
        lambda emit, x: op.nn.relu(emit(op.strided_slice(x, [0], [0], [1]))),
        ["strided_slice", "nn.relu"],
    ),
    "a reshape within": (
        lambda emit, x: op.nn.relu(emit(op.reshape(emit(op.abs(x)), (6, 4)))),
        ["abs", "reshape", "nn.relu"],
    ),
    "nothing else": (lambda emit, x: op.reshape(x, (6, 4)), ["reshape"]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_views_of_whole_tensors_leave(name: str) -> None:
    body, expected = CASES[name]
    assert _kept(body, x=(2, 3, 4)) == expected


def test_a_view_that_two_of_the_group_read_stays() -> None:
    def body(emit: Callable[[Any], Any], x: Any) -> Any:
        flat = emit(op.reshape(x, (6, 4)))
        return op.multiply(emit(op.nn.relu(flat)), emit(op.abs(flat)))

    assert _kept(body, x=(2, 3, 4)) == ["reshape", "nn.relu", "abs", "multiply"]
