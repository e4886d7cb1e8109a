"""Without PyTorch, one sentence says what is missing, and the rest works."""

from __future__ import annotations

import subprocess
import sys

_SCRIPT = """
import sys
sys.modules["torch"] = None  # as if it weren't installed
import tvm_ext
try:
    import tvm_ext.training
except tvm_ext.errors.MissingPackageError as error:
    print(error)
"""


def test_the_error_says_what_to_install() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=True
    )
    assert done.stdout == "tvm_ext.training needs PyTorch: run `pip install 'tvm_ext[torch]'`\n"
