"""Costs by layer of a run worked by hand."""

from tests.codegen.streams import program, read, relu, run, shape, write
from tvm_ext.codegen.layer_costs import LayerCost, layer_costs
from tvm_ext.codegen.program import Layer

STREAM = [
    read(0, 320, push_next=True),
    *shape(1, 5, 64),
    relu(0, 640, pop_prev=True, push_next=True),
    write(640, 320, pop_prev=True),
]
LAYERS = (Layer("in", "MOVE"), Layer("a", "ACT"))


def test_by_hand() -> None:
    result, _ = run(*STREAM, layers=LAYERS, tags=(0, *[1] * 8, 1, -1))
    # A load of 64 + 20 cycles, 8 + 5 of the relu, a store of 84, all of it the relu's share; the
    # load's bytes are those of its own layer.
    assert layer_costs(result) == (
        LayerCost("in", "MOVE", 0, 0, 0.0, 320),
        LayerCost("a", "ACT", 84 + 13 + 84, 0, 0.0, 320),
    )


def test_work_without_a_layer() -> None:
    result, _ = run(*STREAM, layers=LAYERS, tags=(0, *[1] * 8, -1, -1))
    found = layer_costs(result)
    assert [cost.name for cost in found] == ["in", "a", ""]
    assert found[-1] == LayerCost("", "OTHER", 84, 0, 0.0, 320)
    assert sum(cost.cycles for cost in found) == result.cycles


def test_a_program_without_layers() -> None:
    result, _ = run(*STREAM)
    assert layer_costs(result) == (LayerCost("", "OTHER", 181, 0, 0.0, 640),)
    assert result.program == program(*STREAM)
