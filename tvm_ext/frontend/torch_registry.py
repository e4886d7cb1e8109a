"""Which converter turns an ATen operator into Relax: ours first, then TVM's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._ops import OpOverload
from tvm import relax
from tvm.relax.frontend.torch.exported_program_translator import ExportedProgramImporter

from tvm_ext.frontend.onnx_converters.values import const, dtype_of, shape_of
from tvm_ext.frontend.onnx_registry import Node as OnnxNode

aten = torch.ops.aten
# Checks that torch makes when it runs a program. They compute nothing.
IGNORED = frozenset(
    {
        aten._assert_async.default,
        aten._assert_async.msg,
        aten._assert_scalar.default,
        aten._assert_tensor_metadata.default,
        aten.sym_constrain_range.default,
        aten.sym_constrain_range_for_size.default,
    }
)
# TVM's converters of these return what torch doesn't (constants or their input for random numbers,
# zeros for indices), or need shapes that are known at run time only.
_TVM_UNUSABLE = frozenset(
    {
        "_local_scalar_dense.default",
        "_native_batch_norm_legit_functional.default",
        "bernoulli.p",
        "cond",
        "exponential.default",
        "item.default",
        "masked_select.default",
        "native_dropout.default",
        "randn.default",
        "randn_like.default",
    }
)


@dataclass(frozen=True)
class Call:
    """A node as a converter sees it.

    Attributes
    ----------
    bb : relax.BlockBuilder
    name : str
        The operator's, ``aten::add.Tensor`` say.
    args : dict of str to Any
        By the names of the operator's schema, defaults filled in. Tensors are Relax expressions
        (constants where the value is known), everything else is a Python value.
    like : dict of str to Any
        The same arguments with torch's own (fake) tensors, which know how dtypes are promoted.
    shape, dtype
        Of the first output, as torch has them.
    """

    bb: relax.BlockBuilder
    name: str
    args: dict[str, Any]
    like: dict[str, Any]
    shape: tuple[int, ...]
    dtype: str

    def __getitem__(self, name: str) -> Any:
        return self.args[name]

    def emit(self, operator: Callable[..., relax.Expr], *args: Any, **kwargs: Any) -> relax.Expr:
        """Bind what an operator of Relax returns."""
        return self.bb.emit(operator(*args, **kwargs))

    def cast(self, name: str, dtype: str | None = None) -> relax.Expr:
        """An argument, number or tensor, as an expression of `dtype` (the result's by default)."""
        value, dtype = self.args[name], dtype or self.dtype
        if not isinstance(value, relax.Expr):
            return const(value, dtype)
        return value if dtype_of(value) == dtype else self.emit(relax.op.astype, value, dtype)

    def broadcast(self, expr: relax.Expr) -> relax.Expr:
        """An expression in the result's shape; as it is if that is its own."""
        return expr if shape_of(expr) == self.shape else relax.op.broadcast_to(expr, self.shape)

    def promoted(self, *names: str) -> str:
        """The dtype in which torch meets two arguments."""
        return dtype_name(torch.result_type(*(self.like[name] for name in names)))

    def onnx(
        self,
        converter: Callable[..., Any],
        inputs: Sequence[relax.Expr | None],
        outputs: int = 1,
        **attrs: Any,
    ) -> Any:
        """What one of our ONNX converters makes of the same operator."""
        node = OnnxNode("", "", "", 21, ("output",) * outputs)
        result = converter(self.bb, inputs, attrs, node)
        if isinstance(result, list | tuple):
            return [self.bb.emit(x) for x in result]
        return self.bb.emit(result)


Converter = Callable[[Call], Any]
_CONVERTERS: dict[OpOverload, Converter] = {}
_TVM_NAMES = frozenset(ExportedProgramImporter().convert_map) - _TVM_UNUSABLE


def converts(*operators: OpOverload) -> Callable[[Converter], Converter]:
    """Register a converter: it returns an expression, or a list of one an output (None: lacking).

    An exception that it raises reaches the user as a ModelError that names the node.
    """

    def register(function: Converter) -> Converter:
        _CONVERTERS.update(dict.fromkeys(operators, function))
        return function

    return register


def find_converter(operator: Any) -> Converter | None:
    """Return our converter of an operator, or None."""
    return _CONVERTERS.get(operator)


def is_supported(operator: Any) -> bool:
    """Tell whether any converter takes an operator."""
    if operator in _CONVERTERS or not isinstance(operator, OpOverload):
        return operator in _CONVERTERS or getattr(operator, "__name__", "") == "getitem"
    # TVM goes by the name alone, whichever library defines the operator.
    return operator.namespace == "aten" and operator.__name__ in _TVM_NAMES


def operator_name(operator: Any) -> str:
    """The name that torch prints for an operator, ``aten::add.Tensor`` say."""
    name = getattr(operator, "name", None)
    return str(name() if callable(name) else getattr(operator, "__name__", operator))


def dtype_name(dtype: torch.dtype) -> str:
    """A dtype as Relax and numpy name it."""
    return str(dtype).removeprefix("torch.")


def spread(values: Sequence[int], rank: int) -> list[int]:
    """One number for each of `rank` dimensions; torch lets one stand for all."""
    return list(values) * rank if len(values) == 1 else list(values)
