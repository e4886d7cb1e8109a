"""Cases of attention: what they are in a workload, and NumPy's float64 result."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.schedules import oracles
from tests.schedules.kernels import Case
from tests.schedules.strided import Place, view_of
from tvm_ext.schedules.epilogue import Epilogue, Operand, Step
from tvm_ext.schedules.matmul_workload import MatmulWorkload
from tvm_ext.schedules.strided_view import StridedView
from tvm_ext.schedules.workload import NormalizeWorkload

Meaning = Callable[..., np.ndarray]


def swapped(array: np.ndarray) -> np.ndarray:
    return np.swapaxes(array, -1, -2)


def workload(
    q: np.ndarray, keys: np.ndarray, v: np.ndarray, out_shape: tuple[int, ...] = (),
    out: StridedView | None = None, epilogue: Epilogue | None = None,
    between: Epilogue | None = None, last: Epilogue | None = None,
) -> MatmulWorkload:  # fmt: skip
    """softmax(q keys) v for NumPy's views of whole arrays."""
    views = [view_of(x) for x in (q, keys, v)]
    (lhs, left), (rhs, right), (values, whole) = views
    inner = MatmulWorkload.of(
        left.shape, right.shape, lhs=lhs, rhs=rhs, epilogue=epilogue or Epilogue()
    )
    shape = inner.out.shape
    softmax = NormalizeWorkload(
        "softmax", int(np.prod(shape[:-1])), shape[-1], shape, producer=inner,
        epilogue=between or Epilogue(),
    )  # fmt: skip
    return MatmulWorkload.of(
        shape, whole.shape, out_shape, rhs=values, out=out, producer=softmax,
        epilogue=last or Epilogue(),
    )  # fmt: skip


def attention(
    q: np.ndarray, keys: np.ndarray, v: np.ndarray, out_shape: tuple[int, ...] = (),
    place: Place = lambda whole: whole, steps: tuple[Step, ...] = (),
    masks: tuple[np.ndarray, ...] = (), mean: Meaning = lambda scores: scores, **params: object,
) -> tuple[Case, np.ndarray]:  # fmt: skip
    """A case of scores that go through `steps` with `masks`, which `mean` does in NumPy."""
    epilogue = Epilogue(steps, tuple(Operand(x.shape, str(x.dtype)) for x in masks))
    scores = mean(q.astype("float64") @ keys, *masks)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    result = powers / powers.sum(-1, keepdims=True) @ v.astype("float64")
    whole = np.full(out_shape or result.shape, np.nan)
    out, _ = view_of(place(whole))
    w = workload(q, keys, v, whole.shape, out, epilogue)
    place(whole)[...] = result
    data = [view_of(x)[1] for x in (q, keys, v)]
    return Case("attention", w, data, [], list(masks), params=params), whole


def heads(rows: np.ndarray, count: int) -> np.ndarray:
    """(batch, tokens, count * size) as (batch, count, tokens, size)."""
    batch, tokens, width = rows.shape
    return rows.reshape(batch, tokens, count, width // count).transpose(0, 2, 1, 3)


def tensors(
    batch: tuple[int, ...], queries: int, keys: int, size: int, width: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random q, k^T and v of those lengths, with scores of about one."""
    q, k = oracles.random((*batch, queries, size), 1), oracles.random((*batch, keys, size), 2)
    return q / np.float32(size**0.5), swapped(k), oracles.random((*batch, keys, width or size), 3)
