"""The transforms of Winograd's minimal filtering F(m, 3), and code for small linear maps.

Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015: a tile of m x m outputs
is ``A^T [(G g G^T) * (B^T d B)] A`` for a 3 x 3 kernel g and an (m+2) x (m+2) input tile d.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import tirx
from tvm.script.ir_builder import tirx as T

Matrix = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Transform:
    """B^T (a x a), G (a x 3) and A^T (m x a) of F(m, 3), a = m + 2.

    `tolerance` bounds the error relative to the largest output, in float32: the growth of rounding
    errors by the transforms, which the tests check.
    """

    input: Matrix
    kernel: Matrix
    output: Matrix
    tolerance: float


TRANSFORMS: dict[int, Transform] = {
    # Interpolation points 0, 1, -1, infinity.
    2: Transform(
        input=((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1)),
        kernel=((1, 0, 0), (0.5, 0.5, 0.5), (0.5, -0.5, 0.5), (0, 0, 1)),
        output=((1, 1, 1, 0), (0, 1, -1, -1)),
        tolerance=1e-4,
    ),
    # Interpolation points 0, 1, -1, 2, -2, infinity.
    4: Transform(
        input=(
            (4, 0, -5, 0, 1, 0),
            (0, -4, -4, 1, 1, 0),
            (0, 4, -4, -1, 1, 0),
            (0, -2, -1, 2, 1, 0),
            (0, 2, -1, -2, 1, 0),
            (0, 4, 0, -5, 0, 1),
        ),
        kernel=(
            (1 / 4, 0, 0),
            (-1 / 6, -1 / 6, -1 / 6),
            (-1 / 6, 1 / 6, -1 / 6),
            (1 / 24, 1 / 12, 1 / 6),
            (1 / 24, -1 / 12, 1 / 6),
            (0, 0, 1),
        ),
        output=(
            (1, 1, 1, 1, 1, 0),
            (0, 1, -1, 2, -2, 0),
            (0, 1, 1, 4, 4, 0),
            (0, 1, -1, 8, -8, 1),
        ),
        tolerance=1e-3,
    ),
}


def transform_weights(weights: np.ndarray, m: int) -> np.ndarray:
    """G g G^T for every kernel: (K, C, 3, 3) to (a, a, K, C), in float64."""
    g = np.asarray(TRANSFORMS[m].kernel, "float64")
    return np.einsum("ea,koab,nb->enko", g, weights.astype("float64"), g, optimize=True)


def emit_linear_map(
    matrix: Matrix,
    lanes: int,
    load: Callable[[int, Any], tirx.Expr],
    store: Callable[[int, Any, tirx.Expr], None],
) -> None:
    """Emit ``store(i, sum_j matrix[i][j] load(j))`` for vectors, sharing sums between rows.

    Rows or columns of these matrices come in pairs that differ in the sign of every second entry.
    Each pair needs its even and odd part once, which nearly halves the additions.
    """

    def keep(value: Callable[[Any], tirx.Expr]) -> Callable[[Any], tirx.Expr]:
        # A buffer of its own, so that LLVM sees a register.
        vector = T.alloc_buffer((lanes,), "float32", scope="global")
        with T.vectorized(0, lanes) as lane:
            T.buffer_store(vector, value(lane), [lane])
        return lambda lane: vector[lane]

    def loader(j: int) -> Callable[[Any], tirx.Expr]:
        return lambda lane: load(j, lane)

    values = [keep(loader(j)) for j in range(len(matrix[0]))]
    terms, rows = _pair_columns(matrix, values, keep)
    done: set[int] = set()
    for i, row in enumerate(rows):
        if i in done:
            continue
        partner = next(
            (k for k in range(i + 1, len(rows)) if k not in done and _opposite(row, rows[k])), None
        )
        if partner is None:
            with T.vectorized(0, lanes) as lane:
                store(i, lane, _combine(row, terms, lane))
            continue
        same = tuple(a if a == b else 0 for a, b in zip(row, rows[partner], strict=True))
        other = tuple(a if a != b else 0 for a, b in zip(row, rows[partner], strict=True))
        even = keep(_bound(same, terms))
        odd = keep(_bound(other, terms))
        with T.vectorized(0, lanes) as lane:
            store(i, lane, even(lane) + odd(lane))
        with T.vectorized(0, lanes) as lane:
            store(partner, lane, even(lane) - odd(lane))
        done.add(partner)


def _bound(row: tuple[float, ...], terms: list[Any]) -> Callable[[Any], tirx.Expr]:
    return lambda lane: _combine(row, terms, lane)


def _pair_columns(
    matrix: Matrix, values: list[Any], keep: Any
) -> tuple[list[Any], list[tuple[float, ...]]]:
    """Replace column pairs of equal magnitude by their sum and difference."""
    columns = list(zip(*matrix, strict=True))
    terms: list[Any] = []
    coefficients: list[tuple[float, ...]] = []
    used: set[int] = set()
    for j, column in enumerate(columns):
        if j in used:
            continue
        partner = next(
            (
                k
                for k in range(j + 1, len(columns))
                if k not in used
                and sum(map(bool, column)) > 2
                and all(abs(a) == abs(b) for a, b in zip(column, columns[k], strict=True))
            ),
            None,
        )
        if partner is None:
            terms.append(values[j])
            coefficients.append(column)
            continue
        used.add(partner)
        a, b = values[j], values[partner]
        terms.append(keep(_sum(a, b)))
        terms.append(keep(_difference(a, b)))
        pairs = list(zip(column, columns[partner], strict=True))
        coefficients.append(tuple(x if x == y else 0 for x, y in pairs))
        coefficients.append(tuple(x if x != y else 0 for x, y in pairs))
    return terms, list(zip(*coefficients, strict=True))


def _sum(a: Any, b: Any) -> Callable[[Any], tirx.Expr]:
    return lambda lane: a(lane) + b(lane)


def _difference(a: Any, b: Any) -> Callable[[Any], tirx.Expr]:
    return lambda lane: a(lane) - b(lane)


def _opposite(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    """Whether b is a with some, but not all, signs changed, and sharing that pays."""
    same = [x for x, y in zip(a, b, strict=True) if x == y and x]
    changed = [x for x, y in zip(a, b, strict=True) if x == -y and x]
    whole = all(abs(x) == abs(y) for x, y in zip(a, b, strict=True))
    return whole and bool(same) and bool(changed)


def _combine(row: tuple[float, ...], terms: list[Any], lane: Any) -> tirx.Expr:
    total: Any = None
    for c, term in zip(row, terms, strict=True):
        if c == 0:
            continue
        value = term(lane)
        if total is None:
            total = value if c == 1 else value * tirx.const(float(c), "float32")
        elif c == 1:
            total = total + value
        elif c == -1:
            total = total - value
        else:
            total = total + value * tirx.const(float(c), "float32")
    return total if total is not None else tirx.const(0.0, "float32")
