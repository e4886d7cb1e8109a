"""Single operators of Relay's as modules, run through our converters, against given results.

All the cases of a test file are compiled as the functions of one module: compiling is what takes
time, and most of that is spent once a module.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax

from tests.frontend.cases import Compiled, agree, call, compile_functions
from tvm_ext.errors import ModelError
from tvm_ext.frontend.relay import ast
from tvm_ext.frontend.relay.convert import relay_to_relax

Argument = np.ndarray | tuple[np.ndarray, ...]


@dataclass
class Case:
    """One operator; `runtime` says which arguments are inputs, the others are constants."""

    id: str
    op: str
    args: list[Argument]
    attrs: dict[str, Any]
    expected: Any
    runtime: tuple[int, ...] = (0,)
    rtol: float = 1e-5
    inputs: list[np.ndarray] = field(default_factory=list)

    def module(self) -> ast.RelayModule:
        params: list[ast.Var] = []

        def leaf(value: np.ndarray, is_input: bool) -> ast.Expr:
            value = np.asarray(value)
            if not is_input:
                return ast.Constant(value)
            params.append(ast.Var(f"x{len(params)}", ast.TensorType(value.shape, str(value.dtype))))
            self.inputs.append(value)
            return params[-1]

        self.inputs.clear()
        args = [
            ast.Tuple(tuple(leaf(part, k in self.runtime) for part in arg))
            if isinstance(arg, tuple)
            else leaf(arg, k in self.runtime)
            for k, arg in enumerate(self.args)
        ]
        body = ast.Call(ast.Op(self.op), tuple(args), self.attrs)
        return module_of(params, body)

    def arrays(self) -> list[np.ndarray]:
        return self.inputs


# Compiled fast rather than to fast code.
_TARGET = tvm.target.Target({"kind": "llvm", "opt-level": 0})


class Cases(Compiled):
    """Operators of Relay's, compared with their given results."""

    def __init__(self, cases: list[Case]) -> None:
        super().__init__(cases, lambda case: relay_to_relax(case.module())["main"], _TARGET)

    def check(self, name: str) -> None:
        """Compare one case with its results: shapes, dtypes and values."""
        got, case = self.result(name), self.cases[name]
        agree(got, case.expected, case.rtol)


def module_of(params: list[ast.Var], body: ast.Expr, **functions: ast.Function) -> ast.RelayModule:
    """A module of ``main`` and other functions."""
    return ast.RelayModule({"main": ast.Function(tuple(params), body), **functions})


def tensor(name: str, *shape: int | str, dtype: str = "float32") -> ast.Var:
    """A parameter."""
    return ast.Var(name, ast.TensorType(shape, dtype))


def op(name: str, *args: ast.Expr, **attrs: Any) -> ast.Call:
    """A call of an operator."""
    return ast.Call(ast.Op(name), args, attrs)


def run(module: ast.RelayModule, *inputs: np.ndarray, **options: Any) -> list[np.ndarray]:
    """What a converted module computes."""
    function = relay_to_relax(module, **options)["main"]
    return call(compile_functions({"main": function}, _TARGET), "main", *inputs)


def blocked(a: np.ndarray, axis: int, block: int) -> np.ndarray:
    """An axis cut into blocks, which come last."""
    shape = (*a.shape[:axis], a.shape[axis] // block, block, *a.shape[axis + 1 :])
    return np.moveaxis(a.reshape(shape), axis + 1, -1)


def refuses(op: str, args: list[Argument], attrs: dict[str, Any], message: str) -> None:
    """An operator is a `ModelError` with this message."""
    with pytest.raises(ModelError, match=rf"operator {op} .*{message}"):
        relay_to_relax(Case("bad", op, args, attrs, None).module())


def constants(module: tvm.IRModule) -> list[np.ndarray]:
    """The constants that ``main`` has, in order."""
    found: list[relax.Expr] = []

    def visit(expr: relax.Expr) -> None:
        if isinstance(expr, tvm.ir.GenericConst) and expr not in found:
            found.append(expr)

    relax.analysis.post_order_visit(module["main"].body, visit)
    return [expr.value.numpy() for expr in found]
