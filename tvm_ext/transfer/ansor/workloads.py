"""Workloads that Ansor's users registered under a name, of its tutorials.

A record names the function and its arguments; what the function computes stood in the user's
program. These are the computations of Ansor's tutorials, stage by stage as their records count.
"""

from __future__ import annotations

from collections.abc import Callable

from tvm_ext.transfer.ansor.compute_dag import ComputeDag
from tvm_ext.transfer.ansor.errors import DagError
from tvm_ext.transfer.record import Workload

WorkloadFunction = Callable[..., ComputeDag]

_FUNCTIONS: dict[str, WorkloadFunction] = {}
_ZEROS = {"float16": "0h", "float32": "0f", "float64": "0.0"}


def register_workload(name: str) -> Callable[[WorkloadFunction], WorkloadFunction]:
    """Register a function that makes the DAG of a named workload from its key's arguments.

    Raises
    ------
    DagError
        The name is taken.
    """

    def register(function: WorkloadFunction) -> WorkloadFunction:
        if name in _FUNCTIONS:
            raise DagError(f"a workload named {name!r} is registered already")
        _FUNCTIONS[name] = function
        return function

    return register


def named_dag(workload: Workload) -> ComputeDag:
    """The DAG of a workload with a name.

    Raises
    ------
    DagError
        The name isn't registered, or its function doesn't take these arguments.
    """
    function = _FUNCTIONS.get(workload.key)
    if function is None:
        names = ", ".join(sorted(_FUNCTIONS))
        raise DagError(f"no workload is registered as {workload.key!r}; registered: {names}")
    try:
        return function(*workload.arguments)
    except (TypeError, ValueError) as error:
        raise DagError(f"{workload.key} doesn't take {workload.arguments}: {error}") from error


def _zero(dtype: str) -> str:
    if dtype not in _ZEROS:
        raise DagError(f"dtype {dtype!r}; allowed: {', '.join(_ZEROS)}")
    return _ZEROS[dtype]


@register_workload("matmul_add")
def matmul_add(rows: int, inner: int, columns: int, dtype: str) -> ComputeDag:
    """A (rows, inner) matrix times an (inner, columns) one, plus a (rows, columns) one."""
    _zero(dtype)
    text = f"""
A = PLACEHOLDER [{rows}, {inner}]
B = PLACEHOLDER [{inner}, {columns}]
matmul(i, j) += (A[i, k]*B[k, j])
C = PLACEHOLDER [{rows}, {columns}]
out(i, j) = (matmul[i, j] + C[i, j])
"""
    shapes = [(rows, inner), (inner, columns), (rows, columns), (rows, columns)]
    return ComputeDag.parse(text, shapes, dtypes=dict.fromkeys("ABC", dtype))


@register_workload("conv2d_layer")
def conv2d_layer(
    batch: int, height: int, width: int, out_channels: int, in_channels: int,
    kernel_height: int, kernel_width: int, stride: tuple[int, int], padding: tuple[int, int],
) -> ComputeDag:  # fmt: skip
    """An NCHW convolution in float32 with the same padding on both sides, bias and ReLU."""
    (stride_y, stride_x), (pad_y, pad_x) = stride, padding
    out_height = (height + 2 * pad_y - kernel_height) // stride_y + 1
    out_width = (width + 2 * pad_x - kernel_width) // stride_x + 1
    data = (batch, in_channels, height, width)
    kernel = (out_channels, in_channels, kernel_height, kernel_width)
    bias = (1, out_channels, 1, 1)
    text = f"""
data = PLACEHOLDER {list(data)}
pad_temp(i0, i1, i2, i3) = {_padded(height, width, pad_y, pad_x)}
kernel = PLACEHOLDER {list(kernel)}
conv2d_nchw(nn, ff, yy, xx) += (pad_temp[nn, rc, ((yy*{stride_y}) + ry), ((xx*{stride_x}) + rx)]*\
kernel[ff, rc, ry, rx])
bias = PLACEHOLDER {list(bias)}
T_add(ax0, ax1, ax2, ax3) = (conv2d_nchw[ax0, ax1, ax2, ax3] + bias[0, ax1, 0, 0])
compute(i0, i1, i2, i3) = max(T_add[i0, i1, i2, i3], 0f)
"""
    out = (batch, out_channels, out_height, out_width)
    return ComputeDag.parse(text, [data, kernel, bias, out])


def _padded(height: int, width: int, pad_y: int, pad_x: int) -> str:
    guards = [
        f"({axis} >= {pad}) && ({axis} < {size + pad})"
        for axis, size, pad in (("i2", height, pad_y), ("i3", width, pad_x))
        if pad
    ]
    read = f"data[i0, i1, (i2 - {pad_y}), (i3 - {pad_x})]"
    return f"tir.if_then_else(({' && '.join(guards)}), {read}, 0f)" if guards else read


@register_workload("sparse_dense")
def sparse_dense(
    rows: int, columns: int, inner: int, data_shape: tuple[int, int, int],
    indices_shape: tuple[int], indptr_shape: tuple[int], dtype: str,
) -> ComputeDag:  # fmt: skip
    """ReLU of a (rows, inner) matrix times a block-sparse (columns, inner) one, bias, ReLU.

    The weights are in SciPy's BSR form: data (blocks, block rows, block columns), indices
    (blocks,), indptr (block rows of the matrix + 1,). Ansor's loop over the blocks of a row has the
    row's own length; here all rows share the greatest possible one behind a guard, since a block of
    TensorIR with such a loop can't be split together with others. What it computes is the same.
    """
    _, block_rows, block_columns = data_shape
    if (
        columns % block_rows
        or inner % block_columns
        or indptr_shape != (columns // block_rows + 1,)
    ):
        raise DagError(
            f"blocks of {block_rows} x {block_columns} and indptr {list(indptr_shape)} don't make "
            f"a matrix of {columns} x {inner}"
        )
    zero = _zero(dtype)
    first, block = "W_indptr[nb]", "(W_indptr[nb] + elem)"
    text = f"""
X = PLACEHOLDER {[rows, inner]}
W_data = PLACEHOLDER {list(data_shape)}
W_indices = PLACEHOLDER {list(indices_shape)}
W_indptr = PLACEHOLDER {list(indptr_shape)}
relu_x(i, k) = max(X[i, k], {zero})
block_product(i, nb, j) += tir.if_then_else((elem < (W_indptr[(nb + 1)] - {first})), \
(W_data[{block}, j, c]*relu_x[i, ((W_indices[{block}]*{block_columns}) + c)]), {zero})
product(i, j) = block_product[i, floordiv(j, {block_rows}), floormod(j, {block_rows})]
B = PLACEHOLDER {[rows, columns]}
BiasAdd(i, j) = (product[i, j] + B[i, j])
relu(i, j) = max(BiasAdd[i, j], {zero})
"""
    shapes = [(rows, inner), data_shape, indices_shape, indptr_shape, (rows, columns)]
    dtypes = dict.fromkeys(("X", "W_data", "B"), dtype)
    return ComputeDag.parse(
        text,
        [*shapes, (rows, columns)],
        reduce_extents={"elem": inner // block_columns, "c": block_columns},
        dtypes={**dtypes, "W_indices": "int32", "W_indptr": "int32"},
    )
