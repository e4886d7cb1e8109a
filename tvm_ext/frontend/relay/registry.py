"""Which converter turns a Relay operator into Relax."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.frontend.onnx_converters.values import dtype_of, required_constant
from tvm_ext.frontend.onnx_registry import Node

# A tensor, or the fields of a tuple: tuples are taken apart at import and never reach Relax.
Value: TypeAlias = "relax.Expr | tuple[Value, ...]"


@dataclass(frozen=True)
class OpCall:
    """An operator applied to values, as a converter sees it.

    Attributes
    ----------
    bb : relax.BlockBuilder
    name : str
        The operator's, ``nn.conv2d`` say.
    args : tuple of Value
        Tensors are Relax expressions of static shape, constants where the value is known.
    attrs : mapping of str to Any
        Those that the file states; the text form leaves out what has its default.
    """

    bb: relax.BlockBuilder
    name: str
    args: tuple[Value, ...]
    attrs: Mapping[str, Any]

    def tensor(self, index: int) -> relax.Expr:
        """An argument that is a tensor.

        Raises
        ------
        ModelError
            There are fewer arguments, or it's a tuple.
        """
        if index >= len(self.args):
            raise ModelError(f"it has {len(self.args)} arguments; argument {index} is needed")
        value = self.args[index]
        if isinstance(value, tuple):
            raise ModelError(f"argument {index} is a tuple; it must be a tensor")
        return value

    def tensors(self, index: int = 0) -> list[relax.Expr]:
        """The fields of an argument that is a tuple of tensors (or is one tensor)."""
        value = self.args[index]
        fields = value if isinstance(value, tuple) else (value,)
        if any(isinstance(field, tuple) for field in fields):
            raise ModelError(f"argument {index} is a tuple of tuples; it must be one of tensors")
        return list(fields)

    def known(self, index: int, what: str) -> np.ndarray:
        """The value of an argument, which must be known at import."""
        return required_constant(self.tensor(index), what)

    def attr(self, name: str, default: Any = None) -> Any:
        """An attribute, or Relay's default where the file doesn't state it."""
        value = self.attrs.get(name)
        return default if value is None else value

    def required(self, name: str) -> Any:
        """An attribute without default.

        Raises
        ------
        ModelError
            The file doesn't state it.
        """
        value = self.attrs.get(name)
        if value is None:
            raise ModelError(f"the attribute {name!r} is missing")
        return value

    def dtype(self, name: str, default: str) -> str:
        """An attribute that is a dtype; Relay writes an empty one (or void) for "the default"."""
        value = str(self.attrs.get(name) or "")
        return default if value in ("", "void", "None") else value

    def ints(self, name: str, index: int) -> list[int]:
        """Numbers that are an attribute, or in the dynamic form of an operator an argument."""
        if self.name.startswith("dyn.") and index < len(self.args):
            return [int(n) for n in self.known(index, name).reshape(-1)]
        value = self.required(name)
        return [int(n) for n in (value if isinstance(value, list | tuple) else [value])]

    def emit(self, operator: Callable[..., relax.Expr], *args: Any, **kwargs: Any) -> relax.Expr:
        """Bind what an operator of Relax returns."""
        return self.bb.emit(operator(*args, **kwargs))

    def cast(self, expr: relax.Expr, dtype: str) -> relax.Expr:
        """An expression in another dtype; as it is if that is its own."""
        return expr if dtype_of(expr) == dtype else self.emit(relax.op.astype, expr, dtype)

    def onnx(
        self, converter: Callable[..., Any], inputs: Sequence[relax.Expr | None], **attrs: Any
    ) -> relax.Expr:
        """What one of our ONNX converters makes of the same operator."""
        node = Node(self.name, "", "", 21, ("output",))
        result = converter(self.bb, inputs, attrs, node)
        return self.bb.emit(result[0] if isinstance(result, list | tuple) else result)


Converter = Callable[[OpCall], "relax.Expr | Sequence[relax.Expr]"]
_CONVERTERS: dict[str, Converter] = {}


def converts(*names: str) -> Callable[[Converter], Converter]:
    """Register a converter: it returns a tensor, or a sequence of tensors for a tuple.

    An exception that it raises reaches the user as a ModelError that names the operator.
    """

    def register(function: Converter) -> Converter:
        _CONVERTERS.update(dict.fromkeys(names, function))
        return function

    return register


def find_converter(name: str) -> Converter | None:
    """Return the converter of an operator, or None."""
    return _CONVERTERS.get(name)


def supported_operators() -> list[str]:
    """Return the names of all operators that have a converter, in order."""
    return sorted(_CONVERTERS)
