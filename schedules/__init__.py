"""Algorithms: one a file, each a kernel with its parameters and its cost.

Importing the package registers all of them.
"""

import importlib
import pkgutil

from tvm_ext.schedules.base import Algorithm, algorithms, register

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["Algorithm", "algorithms", "register"]
