"""Single-operator ONNX models, run through our importer and through ONNX Runtime.

All the cases of a test file are compiled as the functions of one module: compiling is what takes
time, and most of that is spent once a module.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnxruntime
import tvm
from onnx import helper, numpy_helper
from tvm import relax

from tvm_ext.frontend import load_model


@dataclass
class Case:
    """One node; `runtime` says which inputs are fed at run time, the others are initialisers."""

    id: str
    op: str
    inputs: list[np.ndarray | None]
    attrs: dict[str, Any] = field(default_factory=dict)
    opset: int = 18
    outputs: int = 1
    runtime: tuple[int, ...] = (0,)
    domain: str = ""
    rtol: float = 1e-5

    def model(self) -> onnx.ModelProto:
        names = [f"i{k}" if x is not None else "" for k, x in enumerate(self.inputs)]
        outputs = [f"o{k}" for k in range(self.outputs)]
        node = helper.make_node(
            self.op, names, outputs, name="node", domain=self.domain, **self.attrs
        )
        graph = helper.make_graph(
            [node],
            self.id,
            [
                helper.make_tensor_value_info(
                    names[k],
                    helper.np_dtype_to_tensor_dtype(self.inputs[k].dtype),
                    self.inputs[k].shape,
                )
                for k in self.runtime
            ],
            [onnx.ValueInfoProto(name=name) for name in outputs],
            [
                numpy_helper.from_array(x, names[k])
                for k, x in enumerate(self.inputs)
                if x is not None and k not in self.runtime
            ],
        )
        opsets = [helper.make_opsetid("", self.opset)]
        if self.domain:
            opsets.append(helper.make_opsetid(self.domain, 1))
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)

    def feeds(self) -> dict[str, np.ndarray]:
        return {f"i{k}": self.inputs[k] for k in self.runtime}

    def arrays(self) -> list[np.ndarray]:
        return list(self.feeds().values())


def normal(*shape: int, seed: int = 0, dtype: str = "float32") -> np.ndarray:
    """Return seeded normal numbers."""
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def run_onnxruntime(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Return what ONNX Runtime computes, without its graph rewrites."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return session.run(None, feeds)


def compile_functions(
    functions: dict[str, relax.Function], target: Any = "llvm"
) -> relax.VirtualMachine:
    """Compile Relax functions, each under its own name."""
    module = tvm.IRModule(
        {
            tvm.ir.GlobalVar(name): function.with_attr("global_symbol", name)
            for name, function in functions.items()
        }
    )
    executable = tvm.compile(relax.transform.LegalizeOps()(module), target)
    return relax.VirtualMachine(executable, tvm.cpu())


def call(vm: relax.VirtualMachine, name: str, *args: np.ndarray) -> list[np.ndarray]:
    """Call a compiled function; always return a list of arrays."""
    result = vm[name](*[tvm.runtime.tensor(a) for a in args])
    if isinstance(result, tvm.runtime.Tensor):
        return [result.numpy()]
    return [r.numpy() for r in result]


class Compiled:
    """The cases of one test file, compiled at the first check.

    Parameters
    ----------
    cases : list
        Each has an `id`, and `arrays()`, what it is called with, known once it is converted.
    convert : callable
        What our front end makes of a case.
    target : Target or str
    """

    def __init__(
        self, cases: list[Any], convert: Callable[[Any], relax.Function], target: Any = "llvm"
    ) -> None:
        self.cases = {case.id: case for case in cases}
        if len(self.cases) < len(cases):
            raise ValueError("two cases have the same id")
        self._convert, self._target = convert, target
        self.errors: dict[str, Exception] = {}
        self.vm: relax.VirtualMachine | None = None

    def result(self, name: str) -> list[np.ndarray]:
        """What a case computes; or the error that its conversion raised."""
        if self.vm is None:
            self._compile()
        if name in self.errors:
            raise self.errors[name]
        return call(self.vm, f"case_{name}", *self.cases[name].arrays())

    def _compile(self) -> None:
        functions = {}
        for case in self.cases.values():
            try:
                functions[f"case_{case.id}"] = self._convert(case)
            # One test fails for each case that can't be converted, not all of them.
            except Exception as err:
                self.errors[case.id] = err
        self.vm = compile_functions(functions, self._target)


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


class Cases(Compiled):
    """Nodes of ONNX, compared with ONNX Runtime."""

    def __init__(self, cases: list[Case]) -> None:
        super().__init__(cases, lambda case: load_model(case.model())["main"])

    def check(self, name: str) -> None:
        """Compare one case with ONNX Runtime: shapes, dtypes and values."""
        got, case = self.result(name), self.cases[name]
        agree(got, run_onnxruntime(case.model(), case.feeds()), case.rtol)


def calls(module: tvm.IRModule) -> list[str]:
    """Return the names of the operators that ``main`` calls, in order."""
    names = []

    def visit(expr: relax.Expr) -> None:
        if isinstance(expr, relax.Call) and isinstance(expr.op, tvm.ir.Op):
            names.append(expr.op.name)

    relax.analysis.post_order_visit(module["main"].body, visit)
    return names
