"""The errors of tvm_ext pass through TVM as what they are, where one of its passes raises them."""

from __future__ import annotations

import tvm_ffi

from tvm_ext import errors


def register() -> None:
    """Name to TVM all errors that are made of a message alone; it would make others wrongly."""
    found = [
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, errors.TvmExtError)
    ]
    for error in found:
        if "__init__" not in vars(error):
            tvm_ffi.register_error(error.__name__, error)
