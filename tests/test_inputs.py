"""Inputs: every form is taken, others are refused clearly, random ones are seeded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvm_ext
from tests import models
from tvm_ext.errors import CallError
from tvm_ext.inputs import random_inputs
from tvm_ext.program import Buffer, Program


def test_dict_list_and_array(convnet: tvm_ext.Executable) -> None:
    inputs = models.inputs_for(models.convnet())
    want = models.oracle(models.convnet(), inputs)[0]
    for form in (inputs, [inputs["x"]], (inputs["x"],), inputs["x"]):
        assert models.relative_error(convnet(form), want) < models.RTOL


_GOOD = np.zeros((2, 3), "float32")


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"a": _GOOD}, r"input 'b' is missing; the inputs are \['a', 'b'\]"),
        ({"a": _GOOD, "b": _GOOD, "c": _GOOD}, r"unknown input 'c'; the inputs are \['a', 'b'\]"),
        ([_GOOD], r"1 inputs given; the inputs are \['a', 'b'\]"),
        (_GOOD, r"1 inputs given"),
        ([_GOOD, np.zeros((3, 2), "float32")], r"'b' has shape \(3, 2\); allowed: \(2, 3\)"),
        ([_GOOD, np.zeros((2, 3))], r"'b' has dtype float64; allowed: float32"),
        ([_GOOD, np.zeros(6, "float32")], r"'b' has shape \(6,\); allowed: \(2, 3\)"),
    ],
)
def test_refusals(two_inputs: tvm_ext.Executable, inputs: Any, message: str) -> None:
    with pytest.raises(CallError, match=message):
        two_inputs(inputs)


def test_strided_inputs(convnet: tvm_ext.Executable) -> None:
    x = models.inputs_for(models.convnet())["x"]
    turned = np.ascontiguousarray(x.transpose(0, 1, 3, 2)).transpose(0, 1, 3, 2)
    assert not turned.flags.c_contiguous
    assert np.array_equal(convnet(turned), convnet(x))


def test_random_inputs_are_seeded(two_inputs: tvm_ext.Executable) -> None:
    first, again = two_inputs.random_inputs(3), two_inputs.random_inputs(3)
    other = two_inputs.random_inputs(4)
    assert np.array_equal(first["a"], again["a"])
    assert not np.array_equal(first["a"], other["a"])


def test_random_integers_are_zeros_and_ones() -> None:
    program = Program(buffers=[Buffer((64,), "int64", "input")], inputs={"ids": 0})
    ids = random_inputs(program, 0)["ids"]
    assert ids.dtype == "int64"
    assert set(ids) == {0, 1}
