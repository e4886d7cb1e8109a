"""tvm_ext: real models to fast CPU code, with no tuning.

>>> import tvm_ext
>>> exe = tvm_ext.build("model.onnx")
>>> y = exe(x)
"""

from tvm_ext._versions import check_versions

check_versions()

from tvm_ext import threads as _threads  # noqa: E402

_threads.configure()

from tvm_ext import ffi_errors as _ffi_errors  # noqa: E402
from tvm_ext.artifact.read import load  # noqa: E402
from tvm_ext.build import build, plan  # noqa: E402
from tvm_ext.codegen import byoc as _byoc  # noqa: E402
from tvm_ext.codegen.accelerator import Accelerator  # noqa: E402
from tvm_ext.executable import Executable  # noqa: E402
from tvm_ext.frontend import load_model  # noqa: E402
from tvm_ext.plan import LayerPlan, Plan  # noqa: E402
from tvm_ext.prune import prune  # noqa: E402
from tvm_ext.quantize import QuantizeOptions, quantize  # noqa: E402
from tvm_ext.tune import tune  # noqa: E402

_byoc.register()
_ffi_errors.register()

__version__ = "0.1.0"
__all__ = [
    "Accelerator",
    "Executable",
    "LayerPlan",
    "Plan",
    "QuantizeOptions",
    "build",
    "load",
    "load_model",
    "plan",
    "prune",
    "quantize",
    "tune",
]
