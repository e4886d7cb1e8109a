"""The errors of tvm_ext pass through TVM as what they are, where one of its passes raises them."""

from __future__ import annotations

import tvm_ffi

from tvm_ext import errors as common
from tvm_ext.codegen import errors as codegen


def register() -> None:
    """Name to TVM all errors that are made of a message alone; it would make others wrongly."""
    found = [
        value
        for module in (common, codegen)
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, common.TvmExtError)
    ]
    for error in found:
        if error.__init__ is common.TvmExtError.__init__:
            tvm_ffi.register_error(error.__name__, error)
