"""Which converter turns an ONNX operator into Relax: ours or a user's first, then TVM's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, overload

from tvm import relax
from tvm.relax.frontend.onnx import onnx_frontend

DEFAULT_DOMAINS = ("", "ai.onnx")

# TVM's map has one flat list of operators. These belong to another domain than the standard one
# ("Attention" is in both domains with different inputs, and TVM's is Microsoft's).
_TVM_MICROSOFT = frozenset(
    {
        "Attention",
        "BiasGelu",
        "EmbedLayerNormalization",
        "FastGelu",
        "Gelu",
        "MatMulInteger16",
        "SkipLayerNormalization",
    }
)
# Ops that TVM's map claims and that need values other than tensors, or shapes known at run time.
_TVM_UNUSABLE = frozenset(
    {
        "AllClassNMS",
        "NonMaxSuppression",
        "NonZero",
        "Optional",
        "OptionalGetElement",
        "OptionalHasElement",
        "Unique",
        "Compress",
    }
)
# An attribute value with which TVM's converter gives other results than ONNX defines.
TVM_WRONG = {("RoiAlign", "mode"): b"max"}


@dataclass(frozen=True)
class Node:
    """What a converter may want to know of its node besides inputs and attributes."""

    name: str
    op_type: str
    domain: str
    opset: int
    """Version of the operator set of `domain` that the model uses."""
    outputs: tuple[str, ...]
    """Names of the outputs, "" for one that isn't wanted."""


Inputs = Sequence[relax.Expr | None]
Attributes = dict[str, Any]
Converter = Callable[
    [relax.BlockBuilder, Inputs, Attributes, Node], relax.Expr | Sequence[relax.Expr]
]

_CONVERTERS: dict[tuple[str, str], Converter] = {}


@overload
def register_onnx_converter(
    op_type: str, domain: str = ..., converter: None = ...
) -> Callable[[Converter], Converter]: ...


@overload
def register_onnx_converter(op_type: str, domain: str, converter: Converter) -> Converter: ...


@overload
def register_onnx_converter(
    op_type: str, domain: str = ..., *, converter: Converter
) -> Converter: ...


def register_onnx_converter(
    op_type: str, domain: str = "", converter: Converter | None = None
) -> Any:
    """Teach the ONNX importer an operator, or replace how it converts one.

    Parameters
    ----------
    op_type : str
        The operator's name, ``"Conv"`` say.
    domain : str
        The operator's domain; "" is the standard one.
    converter : callable, optional
        ``converter(bb, inputs, attrs, node)`` returning one Relax expression, or a sequence of
        one expression an output. `bb` is the ``relax.BlockBuilder`` at work; `inputs` holds one
        Relax expression an input (None for an input left out, a Relax constant for everything that
        is known at import); `attrs` maps attribute names to int, float, str, tuples of those, or
        numpy arrays (only the ones that the node sets); `node` has ``name``, ``op_type``,
        ``domain``, ``opset`` and ``outputs``. Shapes are always static. An exception that it raises
        reaches the user as a ModelError that names the node. Without this argument the function is
        a decorator.

    Returns
    -------
    callable
        The converter (or the decorator that takes it).

    Examples
    --------
    >>> from tvm import relax
    >>> from tvm_ext.frontend import register_onnx_converter
    >>> @register_onnx_converter("Twice", domain="com.example")
    ... def convert_twice(bb, inputs, attrs, node):
    ...     return relax.op.add(inputs[0], inputs[0])
    """
    key = (_domain(domain), op_type)

    def register(function: Converter) -> Converter:
        _CONVERTERS[key] = function
        return function

    return register if converter is None else register(converter)


def find_converter(op_type: str, domain: str) -> Converter | None:
    """Return the registered converter of an operator, or None."""
    return _CONVERTERS.get((_domain(domain), op_type))


def find_tvm_converter(op_type: str, domain: str) -> type[onnx_frontend.OnnxOpConverter] | None:
    """Return TVM's own converter class of an operator, or None."""
    # The underscore is TVM's: it has no public way to ask. apache-tvm is pinned to one release.
    classes = onnx_frontend._get_convert_map()
    if op_type not in classes or op_type in _TVM_UNUSABLE:
        return None
    if domain in DEFAULT_DOMAINS:
        known = op_type not in _TVM_MICROSOFT or op_type == "Gelu"
    else:
        known = domain == "com.microsoft" and op_type in _TVM_MICROSOFT
    return classes[op_type] if known else None


def is_supported(op_type: str, domain: str) -> bool:
    """Tell whether any converter takes an operator."""
    return (
        find_converter(op_type, domain) is not None
        or find_tvm_converter(op_type, domain) is not None
    )


def _domain(domain: str) -> str:
    return "" if domain in DEFAULT_DOMAINS else domain
