"""Mapping types against the dependences that NumPy shows when single input elements change."""

from __future__ import annotations

import numpy as np
import pytest
from tvm import relax
from tvm.relax import op

from tests.passes.fusion.operators import CASES, Case
from tvm_ext.passes.fusion.mapping_type import MappingType, mapping_type, mapping_types


def _depends(case: Case, number: int) -> np.ndarray:
    """Which output elements (rows) change with which elements (columns) of one input."""
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(0.5, 1.5, shape) for shape in case.shapes]
    before = case.numpy(*arrays).ravel()
    columns = []
    for i in range(arrays[number].size):
        changed = [a.copy() for a in arrays]
        # Upwards and far, so that a maximum follows too.
        changed[number].reshape(-1)[i] += 10
        columns.append(case.numpy(*changed).ravel() != before)
    return np.stack(columns, 1)


def _expected(case: Case, number: int) -> MappingType:
    depends = _depends(case, number)
    if depends.sum(1).max() > 1:
        return MappingType.MANY_TO_MANY
    if depends.sum(0).max() > 1:
        return MappingType.ONE_TO_MANY
    out, source = np.nonzero(depends)
    if (np.diff(source) < 0).any():
        return MappingType.SHUFFLE
    shape = case.numpy(*(np.ones(s) for s in case.shapes)).shape
    return (
        MappingType.ONE_TO_ONE if len(shape) == len(case.shapes[number]) and _in_place(
            out, source, shape, case.shapes[number]
        ) else MappingType.REORGANIZE
    )  # fmt: skip


def _in_place(
    out: np.ndarray, source: np.ndarray, out_shape: tuple[int, ...], in_shape: tuple[int, ...]
) -> bool:
    """Whether along every axis the input's coordinate is a function of the output's alone."""
    to, of = np.unravel_index(out, out_shape), np.unravel_index(source, in_shape)
    return all(len(set(zip(a, b, strict=True))) == len(set(a)) for a, b in zip(to, of, strict=True))


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_types_are_the_dependences_that_numpy_shows(case: Case) -> None:
    expected = tuple(_expected(case, i) for i in range(len(case.shapes)))
    assert mapping_types(case.call()) == expected


def test_reading_the_same_value_twice_is_one_to_one_for_each_place() -> None:
    twice = Case("", lambda x: op.concat([x, x], 1), lambda x: np.concatenate([x, x], 1), ((2, 3),))
    assert mapping_types(twice.call()) == (MappingType.ONE_TO_ONE,) * 2


def test_both_ways_of_a_branch_are_followed() -> None:
    """`where` of TVM reads one or the other, at the same place."""
    chosen = relax.const(np.array([[True, False, True]] * 2))
    where = Case("", lambda a, b: op.where(chosen, a, b), np.add, ((2, 3), (2, 3)))
    assert mapping_types(where.call()) == (MappingType.ONE_TO_ONE,) * 3


def test_an_index_read_from_a_tensor_may_meet_an_element_twice() -> None:
    at = relax.const(np.array([1, 1, 0]))
    gather = Case("", lambda x: op.take(x, at, 0), lambda x: x[[1, 1, 0]], ((2, 3),))
    assert mapping_types(gather.call())[0] is MappingType.ONE_TO_MANY


def test_implementations_that_write_in_place_are_many_to_many() -> None:
    ranking = Case("", lambda x: op.argsort(x, -1), np.argsort, ((2, 3),))
    assert mapping_type(ranking.call()) is MappingType.MANY_TO_MANY


def test_an_operator_is_as_complex_as_its_most_complex_input() -> None:
    bias = next(c for c in CASES if c.name == "add of a bias")
    assert mapping_type(bias.call()) is MappingType.ONE_TO_MANY
