"""Plans: YAML and back, and edits that don't fit are refused by name."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm_ext
from tests import models
from tvm_ext.errors import ArtifactError, PlanError
from tvm_ext.plan import DEVICES, SOURCES, STORAGES, LayerPlan, Plan

_TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=12)
_LAYERS = st.builds(
    LayerPlan,
    name=_TEXT,
    ops=st.lists(_TEXT, max_size=3),
    algorithm=_TEXT,
    params=st.dictionaries(_TEXT, st.integers() | st.booleans() | _TEXT, max_size=3),
    layout=st.lists(_TEXT, min_size=2, max_size=2),
    storage=st.sampled_from(STORAGES),
    device=st.sampled_from(DEVICES),
    source=st.sampled_from(SOURCES),
    estimate_us=st.floats(0, 1e9),
    gflop=st.floats(0, 1e9),
    megabytes=st.floats(0, 1e9),
    tolerance=st.floats(1e-9, 1),
    rejected=st.dictionaries(_TEXT, _TEXT, max_size=2),
    fallback=_TEXT,
)


@settings(max_examples=100, deadline=None)
@given(_TEXT, st.lists(_LAYERS, max_size=3))
def test_yaml_round_trip(target: str, layers: list[LayerPlan]) -> None:
    plan = Plan(target, layers)
    assert Plan.from_yaml(plan.to_yaml()) == plan


def test_notes() -> None:
    plan = Plan("t", [LayerPlan("a", ["add"], "generic")], notes=["one [of] two", "another"])
    assert Plan.from_yaml(plan.to_yaml()) == plan
    assert " ".join(str(plan).split()).endswith("one [of] two another")
    assert "notes" not in Plan("t", []).to_yaml()
    wrong = plan.to_yaml().replace("- another", "- 3")
    with pytest.raises(PlanError, match=r"notes are a list of texts, not \['one \[of\] two', 3\]"):
        Plan.from_yaml(wrong)


def test_a_real_plan_through_a_file(convnet: tvm_ext.Executable, tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    convnet.plan.save(path)
    assert Plan.load(path) == convnet.plan
    assert [p.name for p in tmp_path.iterdir()] == ["plan.yaml"]
    assert tvm_ext.plan(models.convnet()) == convnet.plan


def test_an_edited_plan_is_followed(tmp_path: Path) -> None:
    plan = tvm_ext.plan(models.convnet())
    layer = plan["conv2d_2"]
    assert layer.algorithm != "generic"
    layer.algorithm, layer.source, layer.params = "generic", "user", {}
    layer.layout = ["plain", "plain"]
    plan.save(tmp_path / "plan.yaml")
    exe = tvm_ext.build(models.convnet(), plan=tmp_path / "plan.yaml")
    assert exe.plan["conv2d_2"].algorithm == "generic"
    (call,) = [c for c in exe.program.calls if c.layer == "conv2d_2" and "conv" in c.kernel]
    assert call.kernel.startswith("conv2d")
    inputs = models.inputs_for(models.convnet())
    want = models.oracle(models.convnet(), inputs)[0]
    assert models.relative_error(exe(inputs), want) < models.RTOL


def _entry(**changes: Any) -> str:
    entry = {"name": "a", "ops": "[relu]", "algorithm": "elementwise", **changes}
    return "version: 1\ntarget: t\nlayers:\n- " + "\n  ".join(f"{k}: {v}" for k, v in entry.items())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "the plan is not YAML"),
        ("- 1", "needs the keys version, target and layers"),
        ("version: 1\nlayers: []", "needs the keys version, target and layers"),
        ("version: 2\ntarget: t\nlayers: []", "plan version 2; allowed: 1"),
        ("version: 1\ntarget: t\nlayers: []\nextra: 1", r"unknown keys \['extra'\]"),
        ("version: 1\ntarget: t\nlayers: 3", "layers is a list, not 3"),
        ("version: 1\ntarget: t\nlayers:\n- {ops: []}", "layer 0 of the plan needs the keys"),
        (_entry(colour="red"), r"layer a: unknown keys \['colour'\]; allowed: \['algorithm'"),
        (_entry(source="luck"), "layer a: source 'luck'; allowed: default, bank"),
        (_entry(device="gpu"), "layer a: device 'gpu'; allowed: cpu, accelerator"),
        (_entry(storage="ragged"), "layer a: storage 'ragged'; allowed: dense, csr"),
        (_entry(layout="[NCHW]"), r"layer a: layout \['NCHW'\]; allowed: \[input, output\]"),
        (_entry(params="7"), "layer a: params 7; allowed: a mapping"),
        (_entry(ops="relu"), "layer a: ops 'relu'; allowed: a list"),
    ],
)
def test_bad_yaml(text: str, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        Plan.from_yaml(text)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"can't read the plan .*gone\.yaml"):
        Plan.load(tmp_path / "gone.yaml")


@pytest.fixture
def plan(convnet: tvm_ext.Executable) -> Plan:
    return copy.deepcopy(convnet.plan)


def _refused(plan: Plan, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        tvm_ext.build(models.convnet(), plan=plan)


def test_wrong_algorithm(plan: Plan) -> None:
    plan["conv2d_0"].algorithm = "magic"
    _refused(plan, r"layer conv2d_0: algorithm 'magic'; allowed: \[.*'spatial_pack'")


def test_wrong_parameter(plan: Plan) -> None:
    plan["conv2d_1"].params["tile"] = 1000
    _refused(plan, r"layer conv2d_1: .*tile")


def test_unknown_parameter(plan: Plan) -> None:
    plan["conv2d_1"].params["colour"] = "red"
    _refused(plan, r"layer conv2d_1: .*colour")


def test_wrong_layout(plan: Plan) -> None:
    plan["conv2d_1"].layout = ["NCHW7c", "NCHW"]
    _refused(plan, r"layer conv2d_1: layout \['NCHW7c', 'NCHW'\]; allowed: ")


def test_wrong_layers(plan: Plan) -> None:
    first = plan.layers.pop(0)
    _refused(plan, "the plan has no entry for layer 'conv2d_0'")
    plan.layers.append(first)
    _refused(plan, "not in the model's order")
    plan.layers.insert(0, plan.layers.pop())
    plan.layers[1].name = "stranger"
    _refused(plan, r"layer 'stranger' isn't in the model; it has \['conv2d_0'")


def test_lookup_by_name(plan: Plan) -> None:
    assert plan["conv2d_0"] is plan.layers[0]
    assert len(plan) == len(plan.layers)
    with pytest.raises(PlanError, match="the plan has no layer 'x'"):
        plan["x"]


def test_table_names_every_layer(plan: Plan) -> None:
    text = str(plan)
    assert all(layer.name in text for layer in plan)
    assert "total" in text


def test_a_plan_that_cannot_be_written_leaves_nothing(tmp_path):
    (tmp_path / "plan.yaml").mkdir()
    with pytest.raises(ArtifactError, match=r"can't write .*plan\.yaml"):
        Plan(target="a CPU", layers=[]).save(tmp_path / "plan.yaml")
    assert [path.name for path in tmp_path.iterdir()] == ["plan.yaml"]
