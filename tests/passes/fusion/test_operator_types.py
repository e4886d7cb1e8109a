"""Types that are shared by calls that look alike are those of each call."""

from __future__ import annotations

import numpy as np
import pytest
from tvm.relax import op

from tests.passes.relax_models import const, module
from tvm_ext.passes import dataflow as df
from tvm_ext.passes.fusion.mapping_type import MappingType, mapping_types
from tvm_ext.passes.fusion.operator_types import input_types, signature


def _call(make, *shapes):
    inputs = {f"x{i}": s for i, s in enumerate(shapes)}
    return df.bindings(module(inputs, lambda emit, *x: make(*x))["main"])[0][1]


@pytest.mark.parametrize(
    ("make", "shapes"),
    [
        (op.add, [(7, 12, 30), (7, 1, 30)]),
        (op.add, [(30,), (7, 30)]),
        (op.multiply, [(4, 4), (4, 1)]),
        (op.where, [(1, 5), (6, 5), (6, 1)]),
        (lambda x: op.clip(x, 0, 6), [(1, 64, 7, 7)]),
        (lambda x, y: op.concat([x, y], 1), [(2, 3), (2, 5)]),
        (lambda x: op.reshape(x, (6, 4)), [(2, 12)]),
        (op.matmul, [(3, 4), (4, 5)]),
    ],
)
def test_types_are_those_of_the_call(make, shapes):
    dtypes = (lambda *x: make(op.astype(x[0], "bool"), *x[1:])) if make is op.where else make
    mod = module({f"x{i}": s for i, s in enumerate(shapes)}, lambda emit, *x: emit(dtypes(*x)))
    call = df.bindings(mod["main"])[-2][1]
    assert tuple(input_types(call).values()) == mapping_types(call)


def test_a_tensor_that_is_read_twice_has_its_most_complex_type():
    call = _call(lambda x: op.matmul(x, x), (4, 4))
    assert list(input_types(call).values()) == [MappingType.MANY_TO_MANY]


def test_signatures_differ_with_attributes_and_shapes():
    calls = [
        _call(lambda x: op.mean(x, 0), (4, 4)), _call(lambda x: op.mean(x, 1), (4, 4)),
        _call(lambda x: op.mean(x, 0), (4, 5)), _call(lambda x: op.sum(x, 0), (4, 4)),
    ]  # fmt: skip
    assert len({signature(call) for call in calls}) == 4
    again = _call(lambda x: op.mean(x, 0), (4, 4))
    assert signature(again) == signature(calls[0])


def test_weights_are_no_part_of_a_signature():
    zeros, ones = (
        _call(lambda x, w=w: op.matmul(x, const(w)), (5, 64))
        for w in (np.zeros((64, 3), "float32"), np.ones((64, 3), "float32"))
    )
    assert signature(zeros) == signature(ones)
