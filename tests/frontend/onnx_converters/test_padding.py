"""Pad in all its modes against ONNX Runtime."""

import numpy as np
import pytest

from tvm_ext.errors import ModelError
from tvm_ext.frontend import load_model

from ..cases import Case, Cases, calls, normal

X = normal(2, 3, 5, 4)
PADS = np.array([0, 1, 2, 0, 1, 0, 3, 1])

CASES = Cases(
    [
        Case("constant", "Pad", [X, PADS]),
        Case("constant_value", "Pad", [X, PADS, np.array(1.5, "float32")]),
        Case("negative", "Pad", [X, np.array([0, 0, -2, 1, 0, -1, -1, -2])]),
        Case("axes", "Pad", [X, np.array([1, 2, 0, 3]), None, np.array([-1, 1])]),
        Case("integers", "Pad", [np.arange(6, dtype="int64"), np.array([1, 2]), np.array(7)]),
        *[
            Case(mode, "Pad", [X, np.array([0, 1, 2, 3, 1, 0, 4, 2])], {"mode": mode})
            for mode in ("reflect", "edge")
        ],
        Case("wrap", "Pad", [X, np.array([0, 1, 2, 0, 0, 0, 3, 1])], {"mode": "wrap"}, opset=19),
        Case("opset2", "Pad", [X], {"pads": PADS.tolist(), "value": 0.5}, opset=2),
        Case("opset2_reflect", "Pad", [X], {"pads": PADS.tolist(), "mode": "reflect"}, opset=2),
    ]
)


@pytest.mark.parametrize("name", CASES.cases)
def test_matches_onnxruntime(name):
    CASES.check(name)


def test_constant_padding_is_relax_pad():
    assert calls(load_model(CASES.cases["constant"].model())) == ["relax.nn.pad"]


def test_pads_at_run_time_are_refused():
    case = Case("runtime", "Pad", [X, PADS], runtime=(0, 1))
    with pytest.raises(ModelError, match="the input 'pads' must be constant"):
        load_model(case.model())


def test_unknown_mode_lists_the_modes():
    case = Case("mode", "Pad", [X, PADS], {"mode": "mirror"})
    with pytest.raises(
        ModelError, match="'mirror'; it must be one of constant, reflect, edge, wrap"
    ):
        load_model(case.model())
