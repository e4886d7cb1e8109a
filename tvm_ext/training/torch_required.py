"""PyTorch, checked before anything of training is imported."""

from __future__ import annotations

from importlib.util import find_spec

from tvm_ext.errors import MissingPackageError


def check_torch() -> None:
    """Raise `MissingPackageError` with one clear sentence unless PyTorch is installed."""
    if find_spec("torch") is None:
        raise MissingPackageError(
            "tvm_ext.training needs PyTorch: run `pip install 'tvm_ext[torch]'`"
        )
