"""Kernels that MetaSchedule's own rules fail on still have a space, and say that it is a part."""

from __future__ import annotations

import pytest
from tvm import relax
from tvm.s_tir import ScheduleError

from tests.passes.relax_models import array, const, module
from tests.schedules.kernels import HOST
from tests.transfer.programs import conv
from tvm_ext.grouped_model import grouped
from tvm_ext.transfer.tune_search import KernelSearch, SearchOptions, SharedModel
from tvm_ext.transfer.tune_space import tune_context
from tvm_ext.transfer.tune_task import tune_tasks

OPTIONS = SearchOptions(round_size=2, population=8, generations=1)


def _search(function):
    return KernelSearch(function, HOST, 4, [], SharedModel(HOST, OPTIONS), OPTIONS, 1)


def test_a_normalisation_behind_a_product_is_searched_without_joined_tiles():
    def body(emit, x):
        y = emit(
            relax.op.add(emit(relax.op.matmul(x, const(array(0, 32, 64)))), const(array(1, 64)))
        )
        return relax.op.nn.layer_norm(y, const(array(2, 64)), const(array(3, 64)), axes=[-1])

    layers = grouped(module({"x": (1, 16, 32)}, body), HOST).layers
    (task,) = tune_tasks(layers, {layer.name: 1.0 for layer in layers})
    function = task.program.workload.function
    with pytest.raises(ScheduleError):
        tune_context(function, HOST).generate_design_space()
    search = _search(function)
    assert search.propose()
    assert "tiles are not joined" in search.note


def test_others_are_searched_whole():
    assert not _search(conv(8, 8, 8, 3, 1, ("relu",)).workload.function).note
