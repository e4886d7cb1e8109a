"""Gemm and MatMul against ONNX Runtime; constant weights arrive ready to use."""

import numpy as np
import pytest
import tvm

from tvm_ext.frontend import load_model

from ..cases import Case, Cases, calls, normal

A, B, C = normal(5, 7), normal(7, 3, seed=1), normal(3, seed=2)

CASES = Cases(
    [
        Case("plain", "Gemm", [A, B, C]),
        Case("no_c", "Gemm", [A, B], {"alpha": 0.5}),
        Case("scaled", "Gemm", [A, B, C], {"alpha": 0.5, "beta": -2.0}),
        Case("beta_zero", "Gemm", [A, B, C], {"beta": 0.0}),
        Case("trans_b", "Gemm", [A, B.T.copy(), C], {"transB": 1, "alpha": 1.5}),
        Case("trans_a", "Gemm", [A.T.copy(), B, normal(5, 1)], {"transA": 1}),
        Case("weights_left", "Gemm", [A, B, C], {"alpha": 3.0, "beta": 0.5}, runtime=(1,)),
        Case(
            "all_at_run_time",
            "Gemm",
            [A.T.copy(), B.T.copy(), normal(5, 3)],
            {"transA": 1, "transB": 1, "alpha": 0.25, "beta": 2.0},
            runtime=(0, 1, 2),
        ),
        Case("opset7", "Gemm", [A, B, C], {"transB": 0}, opset=7),
        Case("matmul", "MatMul", [normal(2, 3, 5, 7), B]),
        Case("matmul_vector", "MatMul", [normal(7), normal(2, 7, 3)]),
        Case("matmul_batched", "MatMul", [normal(3, 1, 2, 7), normal(4, 7, 3)], runtime=(0, 1)),
        Case("einsum", "Einsum", [normal(2, 3, 5), normal(2, 5, 4)], {"equation": "bij,bjk->bik"}),
        Case("einsum_transpose", "Einsum", [normal(2, 3, 5)], {"equation": "bij->jb"}),
    ]
)


@pytest.mark.parametrize("name", CASES.cases)
def test_matches_onnxruntime(name):
    CASES.check(name)


def test_gemm_is_one_matmul_with_transposed_scaled_weights_and_one_add():
    module = load_model(CASES.cases["trans_b"].model())
    assert calls(module) == ["relax.matmul", "relax.add"]
    weight = module["main"].body.blocks[0].bindings[0].value.args[1]
    assert isinstance(weight, tvm.ir.GenericConst)
    np.testing.assert_array_equal(weight.value.numpy(), B * np.float32(1.5))
