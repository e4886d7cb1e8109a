"""A Relay module as a Relax one: functions inlined, conditions and loops unrolled, then operators.

The walk has a stack of its own: Relay's graphs are as deep as their networks, and Python's is not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tvm
from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.frontend.emit import emit_main, tensors_of
from tvm_ext.frontend.onnx_converters.values import const, constant, dtype_of, shape_of
from tvm_ext.frontend.relay import ast
from tvm_ext.frontend.relay.bind import bind_parameters
from tvm_ext.frontend.relay.registry import OpCall, Value, find_converter
from tvm_ext.frontend.relay.scan import check_operators
from tvm_ext.frontend.relay.sink_transposes import sink_transposes

MAX_ACTIVE = 4096
"""How many calls of one function may be under way: what a loop is unrolled to at most."""


def relay_to_relax(
    module: ast.RelayModule,
    params: Mapping[str, np.ndarray] | None = None,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
) -> tvm.IRModule:
    """Convert a Relay module.

    Calls of functions (global, primitive or closures) are inlined. A condition that is known at
    import chooses its branch, so that a loop with a known number of rounds is unrolled; of another
    one both branches are computed, which have no effects, and ``relax.where`` chooses.

    Parameters
    ----------
    module : RelayModule
        With a function ``main``.
    params : mapping of str to np.ndarray, optional
        Values of parameters of ``main``, which become constants.
    input_shapes : mapping of str to sequence of int, optional
        Shapes of the inputs with open dimensions (``?``).

    Returns
    -------
    tvm.IRModule
        As `tvm_ext.frontend.load_model` describes it; the outputs are ``output0``, ``output1``...

    Raises
    ------
    ModelError
        There's no ``main``; `params` doesn't fit it; an operator can't be converted, or its result
        has another type than the module states; a recursion whose end isn't known at import.
    UnsupportedOperatorsError
        Operators without a converter, all of them with how often they occur.
    InputShapeError
        `input_shapes` doesn't fit, or lacks an input.
    """
    if "main" not in module.functions:
        raise ModelError(f"the module has no function @main; it has {sorted(module.functions)}")
    check_operators(module)
    main = module.functions["main"]
    bound = bind_parameters(main, params or {}, input_shapes or {})
    importer = _Importer(module)
    inputs = [expr for expr in bound.values() if isinstance(expr, relax.Var)]

    def convert() -> list[tuple[str, relax.Expr]]:
        found = _leaves(importer.run(main.body, _Frame(dict(bound))))
        return [(f"output{i}", expr) for i, expr in enumerate(found)]

    return sink_transposes(emit_main(importer.bb, inputs, convert))


@dataclass(eq=False)
class _Frame:
    """The values of one call: its variables, and every expression that was computed in it."""

    values: dict[Any, Any]
    parent: _Frame | None = None

    def find(self, expr: ast.Expr) -> Any:
        frame: _Frame | None = self
        while frame is not None:
            if expr in frame.values:
                return frame.values[expr]
            frame = frame.parent
        return None


@dataclass(frozen=True, eq=False)
class _Closure:
    """A function with the variables that it sees."""

    function: ast.Function
    frame: _Frame | None


# What computes an expression: it asks for others by yielding them, and returns a value.
_Steps = Generator[tuple[ast.Expr, _Frame], Any, Any]


@dataclass
class _Importer:
    module: ast.RelayModule
    bb: relax.BlockBuilder = field(default_factory=relax.BlockBuilder)
    counts: Counter[str] = field(default_factory=Counter)
    # The function -> how many undecided conditions stood around each call that is under way.
    active: dict[ast.Function, list[int]] = field(default_factory=dict)
    undecided: int = 0

    def run(self, root: ast.Expr, frame: _Frame) -> Any:
        """Compute an expression and all that it needs, each once a frame."""
        stack: list[tuple[ast.Expr, _Frame, _Steps]] = [(root, frame, self.steps(root, frame))]
        value: Any = None
        while stack:
            expr, frame, steps = stack[-1]
            try:
                wanted, where = steps.send(value)
            except StopIteration as done:
                value = frame.values[expr] = done.value
                stack.pop()
                continue
            value = where.find(wanted)
            if value is None:
                stack.append((wanted, where, self.steps(wanted, where)))
        return value

    def steps(self, expr: ast.Expr, frame: _Frame) -> _Steps:
        match expr:
            case ast.Call():
                return (yield from self.call(expr, frame))
            case ast.Constant():
                return const(expr.data)
            case ast.Tuple():
                values = []
                for part in expr.fields:
                    values.append((yield part, frame))
                return tuple(values)
            case ast.TupleGetItem():
                value = yield expr.value, frame
                if not isinstance(value, tuple) or not 0 <= expr.index < len(value):
                    raise ModelError(f"field {expr.index} is taken of {_show(value)}")
                return value[expr.index]
            case ast.Let():
                frame.values[expr.var] = yield expr.value, frame
                return (yield expr.body, frame)
            case ast.If():
                return (yield from self.choose(expr, frame))
            case ast.Function():
                return _Closure(expr, frame)
            case ast.GlobalVar():
                if expr.name not in self.module.functions:
                    raise ModelError(f"the module has no function @{expr.name}, which it calls")
                return _Closure(self.module.functions[expr.name], None)
            case ast.Var():
                raise ModelError(f"the variable %{expr.name} is used where nothing binds it")
            case ast.Op():
                raise ModelError(f"the operator {expr.name} is used as a value, not called")

    def choose(self, expr: ast.If, frame: _Frame) -> _Steps:
        condition = yield expr.condition, frame
        if not isinstance(condition, relax.Expr) or dtype_of(condition) != "bool":
            raise ModelError(f"the condition of an If is {_show(condition)}; it must be a bool")
        if any(n != 1 for n in shape_of(condition)):
            raise ModelError(f"the condition of an If is {_show(condition)}; it must be one number")
        known = constant(condition)
        if known is not None:
            return (yield (expr.true if known.item() else expr.false), frame)
        self.undecided += 1
        true = yield expr.true, frame
        false = yield expr.false, frame
        self.undecided -= 1
        return self.select(condition, true, false)

    def select(self, condition: relax.Expr, true: Value, false: Value) -> Value:
        """The branch that a condition chooses at run time, both of them computed."""
        if isinstance(true, tuple) and isinstance(false, tuple) and len(true) == len(false):
            pairs = zip(true, false, strict=True)
            return tuple(self.select(condition, *pair) for pair in pairs)
        types = [_show(value) for value in (true, false)]
        if not isinstance(true, relax.Expr) or types[0] != types[1]:
            raise ModelError(f"the branches of an If give {types[0]} and {types[1]}")
        return self.bb.emit(relax.op.where(condition, true, false))

    def call(self, expr: ast.Call, frame: _Frame) -> _Steps:
        callee: Any = expr.callee
        if not isinstance(callee, ast.Op):
            callee = yield callee, frame
        args = []
        for arg in expr.args:
            args.append((yield arg, frame))
        if isinstance(callee, ast.Op):
            return self.operator(expr, callee.name, tuple(args))
        if not isinstance(callee, _Closure):
            raise ModelError(f"{_show(callee)} is called; only operators and functions can be")
        function = callee.function
        if len(args) != len(function.params):
            raise ModelError(
                f"a function of {len(function.params)} parameters is called with {len(args)}"
            )
        self.enter(function)
        inner = _Frame(dict(zip(function.params, args, strict=True)), callee.frame)
        result = yield function.body, inner
        self.active[function].pop()
        return result

    def enter(self, function: ast.Function) -> None:
        """Note a call; refuse a recursion that wouldn't end."""
        calls = self.active.setdefault(function, [])
        if calls and self.undecided > calls[-1]:
            raise ModelError(
                "a function calls itself under a condition that is only known at run time; loops "
                "must have a number of rounds that is known at import"
            )
        if len(calls) >= MAX_ACTIVE:
            raise ModelError(f"a function calls itself more than {MAX_ACTIVE} times")
        calls.append(self.undecided)

    def operator(self, expr: ast.Call, name: str, args: tuple[Any, ...]) -> Value:
        self.counts[name] += 1
        label = f"operator {name} (number {self.counts[name]} of its kind)"
        converter = find_converter(name)
        if converter is None:
            raise ModelError(f"{label} has no converter")
        try:
            result = converter(OpCall(self.bb, name, args, expr.attrs))
            value = self.emitted(result)
            _check_type(value, expr.type)
        except ModelError as err:
            raise ModelError(f"{label}: {err}") from err
        # Whatever TVM raises, the user should learn at which operator of the model.
        except Exception as err:
            shown = ", ".join(_show(arg) for arg in args)
            raise ModelError(f"{label} can't be converted: {err} (arguments: {shown})") from err
        return value

    def emitted(self, result: relax.Expr | Sequence[relax.Expr]) -> Value:
        """A converter's result as a tensor or a tuple of them, bound and of static shape."""
        tensors = [self.bound(expr) for expr in tensors_of(self.bb, result)]
        single = not isinstance(result, list | tuple) and (
            len(tensors) == 1 and not isinstance(self.bb.normalize(result).ty, relax.TupleType)
        )
        return tensors[0] if single else tuple(tensors)

    def bound(self, expr: relax.Expr) -> relax.Expr:
        if not isinstance(expr, relax.Var | tvm.ir.GenericConst):
            expr = self.bb.emit(expr)
        ty = expr.ty
        if not isinstance(ty, relax.TensorType) or ty.shape is None:
            raise ModelError(f"the result's shape isn't known at import: {ty}")
        if not all(isinstance(dim, tvm.tirx.IntImm) for dim in ty.shape):
            raise ModelError(f"the result's shape isn't static: {ty}")
        return expr


def _check_type(value: Value, stated: ast.Type | None) -> None:
    """Compare a result with the type that the module states; open dimensions fit anything."""
    if isinstance(stated, ast.TupleType):
        if not isinstance(value, tuple) or len(value) != len(stated.fields):
            raise ModelError(f"got {_show(value)}, the module states {stated}")
        for part, inner in zip(value, stated.fields, strict=True):
            _check_type(part, inner)
    elif isinstance(stated, ast.TensorType):
        fits = (
            isinstance(value, relax.Expr)
            and dtype_of(value) == stated.dtype
            and len(shape_of(value)) == len(stated.shape)
            and all(
                isinstance(dim, str) or dim == n
                for dim, n in zip(stated.shape, shape_of(value), strict=True)
            )
        )
        if not fits:
            raise ModelError(f"got {_show(value)}, the module states {stated.dtype} {stated.shape}")


def _leaves(value: Any) -> list[relax.Expr]:
    """The tensors of a value, in order."""
    if isinstance(value, tuple):
        return [leaf for part in value for leaf in _leaves(part)]
    if not isinstance(value, relax.Expr):
        raise ModelError(f"@main returns {_show(value)}; only tensors can be outputs")
    return [value]


def _show(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(_show(part) for part in value)})"
    if isinstance(value, relax.Expr):
        return f"{dtype_of(value)} {shape_of(value)}"
    return "a function" if isinstance(value, _Closure) else str(value)
