"""What formats refuse."""

from __future__ import annotations

from types import SimpleNamespace
from typing import NoReturn

import pytest
from google.protobuf.message import EncodeError

from tvm_ext.cli.errors import UserError
from tvm_ext.cli.formats import onnx_bytes


class _Large:
    """What protobuf does with more than it can hold, without the memory for it."""

    graph = SimpleNamespace(initializer=[SimpleNamespace(raw_data=range(3 * 2**29))] * 2)

    def SerializeToString(self) -> NoReturn:
        raise EncodeError("Failed to serialize proto")


def test_weights_that_no_onnx_file_holds_are_refused() -> None:
    with pytest.raises(UserError, match=r"less than 2 GiB, the weights are 3\.0 GiB: .*\.json"):
        onnx_bytes(_Large())
