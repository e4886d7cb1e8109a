"""Single operators of Relay's as modules, run through our converters, against given results.

All the cases of a test file are compiled as the functions of one module: compiling is what takes
time, and most of that is spent once a module.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tvm
from tvm import relax

from tests.frontend.cases import call
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


class Cases:
    """The cases of one test file, compiled at the first check."""

    def __init__(self, cases: list[Case]) -> None:
        self.cases = {case.id: case for case in cases}
        if len(self.cases) < len(cases):
            raise ValueError("two cases have the same id")
        self.errors: dict[str, Exception] = {}
        self.vm: relax.VirtualMachine | None = None

    def check(self, name: str) -> None:
        """Compare one case with its results: shapes, dtypes and values."""
        if self.vm is None:
            self._compile()
        if name in self.errors:
            raise self.errors[name]
        case = self.cases[name]
        got = call(self.vm, f"case_{name}", *case.inputs)
        agree(got, case.expected, case.rtol)

    def _compile(self) -> None:
        functions = {}
        for case in self.cases.values():
            try:
                functions[f"case_{case.id}"] = relay_to_relax(case.module())["main"]
            # One test fails for each case that can't be converted, not all of them.
            except Exception as err:
                self.errors[case.id] = err
        self.vm = compile_functions(functions)


def compile_functions(functions: dict[str, relax.Function]) -> relax.VirtualMachine:
    """Compile Relax functions, each under its own name, fast rather than to fast code."""
    module = tvm.IRModule(
        {
            tvm.ir.GlobalVar(name): function.with_attr("global_symbol", name)
            for name, function in functions.items()
        }
    )
    target = tvm.target.Target({"kind": "llvm", "opt-level": 0})
    executable = tvm.compile(relax.transform.LegalizeOps()(module), target)
    return relax.VirtualMachine(executable, tvm.cpu())


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
    return call(compile_functions({"main": function}), "main", *inputs)


def agree(got: list[np.ndarray], expected: Any, rtol: float = 1e-5) -> None:
    """Compare results: shapes, dtypes and values."""
    wanted = list(expected) if isinstance(expected, list | tuple) else [expected]
    assert len(got) == len(wanted)
    for ours, theirs in zip(got, wanted, strict=True):
        theirs = np.asarray(theirs)
        assert ours.shape == theirs.shape
        assert ours.dtype == theirs.dtype
        scale = np.abs(theirs[np.isfinite(theirs)]).max(initial=0) if theirs.size else 0
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=rtol * float(scale) * 0.1)


def constants(module: tvm.IRModule) -> list[np.ndarray]:
    """The constants that ``main`` has, in order."""
    found: list[relax.Expr] = []

    def visit(expr: relax.Expr) -> None:
        if isinstance(expr, tvm.ir.GenericConst) and expr not in found:
            found.append(expr)

    relax.analysis.post_order_visit(module["main"].body, visit)
    return [expr.value.numpy() for expr in found]
