"""Dispatch on what is loaded."""

import pytest

from tvm_ext.errors import ModelError
from tvm_ext.frontend import load_model


@pytest.mark.parametrize("thing", [None, 3, b"model.onnx", {"model": 1}])
def test_unknown_kinds_are_refused_with_the_allowed_ones(thing):
    with pytest.raises(ModelError, match=r"expected the path of an ONNX file, an onnx\.ModelProto"):
        load_model(thing)
