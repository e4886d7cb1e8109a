"""Programs as C sources for devices without an operating system."""

from tvm_ext.codegen.export.driver import DriverFiles, export_program

__all__ = ["DriverFiles", "export_program"]
