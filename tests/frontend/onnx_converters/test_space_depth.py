"""SpaceToDepth and DepthToSpace against ONNX Runtime, and CRD against a hand-worked example."""

import numpy as np
import pytest

from tvm_ext.frontend import load_model

from ..cases import Case, Cases, call, compile_functions, normal

X = normal(2, 8, 4, 6)
CASES = Cases(
    [
        Case("space_to_depth", "SpaceToDepth", [X], {"blocksize": 2}),
        Case("depth_to_space_dcr", "DepthToSpace", [X], {"blocksize": 2}),
        Case("depth_to_space_crd", "DepthToSpace", [X], {"blocksize": 2, "mode": "CRD"}),
    ]
)


@pytest.mark.parametrize("name", CASES.cases)
def test_matches_onnxruntime(name):
    CASES.check(name)


def test_space_to_depth_crd_keeps_each_channel_together():
    x = np.arange(8, dtype="float32").reshape(1, 2, 2, 2)
    case = Case("crd", "SpaceToDepth", [x], {"blocksize": 2, "mode": "CRD"}, opset=26)
    (got,) = call(compile_functions({"f": load_model(case.model())["main"]}), "f", x)
    assert got.reshape(-1).tolist() == [0, 1, 2, 3, 4, 5, 6, 7]
