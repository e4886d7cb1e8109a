"""The TVM that this release is made for, checked before anything touches it."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from tvm_ext.errors import VersionError

REQUIRED = {"apache-tvm": "0.27.0.post1", "apache-tvm-ffi": "0.1.14.post1"}


def check_versions() -> None:
    """Raise `VersionError` with one clear sentence unless the pinned versions are installed."""
    for package, required in REQUIRED.items():
        try:
            found = version(package)
        except PackageNotFoundError:
            found = "not installed"
        if found != required:
            raise VersionError(
                f"tvm_ext needs {package} {required}, found {found}: "
                f"run `pip install {package}=={required}`"
            )
