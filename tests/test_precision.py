"""`precision`: what it allows, how plans carry it, and where saved models run."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest

import tvm_ext
from tests import models
from tests.cli.commands import fails, run_command
from tests.schedules.amx_kernels import needs_amx
from tvm_ext import target as target_module
from tvm_ext.artifact import compatibility
from tvm_ext.errors import ArtifactError, OptionError, PlanError
from tvm_ext.plan import Plan
from tvm_ext.schedules.amx import FEATURES

SAPPHIRE = "llvm -mtriple=x86_64-linux-gnu -mcpu=sapphirerapids"
AMX = {"amx_conv", "amx_matmul"}


def model() -> onnx.ModelProto:
    """A convolution and a product that are large enough for AMX."""
    rng = np.random.default_rng(0)
    weights = {
        "w": rng.standard_normal((128, 128, 3, 3)).astype("float32"),
        "m": rng.standard_normal((1152, 256)).astype("float32"),
    }
    nodes = [
        ("Conv", ["x", "w"], {"pads": [1] * 4}),
        ("MatMul", ["t", "m"], {}),
    ]
    inputs = {"x": np.zeros((1, 128, 20, 20), "float32"), "t": np.zeros((128, 1152), "float32")}
    return models.operators(nodes, inputs, weights)


def used(plan: Plan) -> set[str]:
    return {layer.algorithm for layer in plan} & AMX


@pytest.fixture(scope="module")
def high() -> Plan:
    """Of a CPU with AMX, on whatever machine the tests run."""
    return tvm_ext.plan(model(), SAPPHIRE, tuning="none", precision="high")


def test_highest_is_the_default_and_leaves_amx_alone() -> None:
    plan = tvm_ext.plan(model(), SAPPHIRE, tuning="none")
    assert plan.precision == "highest"
    assert not used(plan)
    for layer in plan:
        for name in AMX & set(layer.rejected):
            assert layer.rejected[name] == "precision highest; only high"
    assert plan == tvm_ext.plan(model(), SAPPHIRE, tuning="none", precision="highest")


def test_high_takes_amx_and_says_what_it_costs(high: Plan) -> None:
    assert used(high) == AMX
    for layer in high:
        if layer.algorithm in AMX:
            assert layer.params["products"] == 3
            assert layer.tolerance == 1e-3
    assert "precision high" in str(high)


def test_high_on_other_cpus_changes_nothing() -> None:
    target = "llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512"
    plan = tvm_ext.plan(model(), target, tuning="none", precision="high")
    assert not used(plan)
    assert plan["conv2d_0"].rejected["amx_conv"].startswith("the target has no AMX")


def test_another_precision_is_refused() -> None:
    for make in (tvm_ext.plan, tvm_ext.build):
        with pytest.raises(OptionError, match=r"precision='medium'; allowed: highest, high"):
            make(model(), precision="medium")


def test_a_plan_file_carries_its_precision(high: Plan, tmp_path: Path) -> None:
    high.save(tmp_path / "plan.yaml")
    assert "precision: high\n" in (tmp_path / "plan.yaml").read_text()
    exe = tvm_ext.build(model(), SAPPHIRE, plan=tmp_path / "plan.yaml")
    assert exe.plan == high
    assert exe.target.precision == "high"
    assert "tdpbf16ps" in exe.assembly()


def test_plans_without_the_key_are_of_the_highest_precision(high: Plan) -> None:
    text = high.to_yaml().replace("precision: high\n", "")
    plan = Plan.from_yaml(text)
    assert plan.precision == "highest"
    with pytest.raises(PlanError, match="amx_conv doesn't apply: precision highest; only high"):
        tvm_ext.build(model(), SAPPHIRE, plan=plan)
    with pytest.raises(PlanError, match="precision is 'low'; allowed: highest, high"):
        Plan.from_yaml(high.to_yaml().replace("precision: high\n", "precision: low\n"))


def test_a_given_plan_has_its_own_precision() -> None:
    plan = tvm_ext.plan(model(), SAPPHIRE, tuning="none")
    exe = tvm_ext.build(model(), SAPPHIRE, plan=plan, precision="high")
    assert exe.target.precision == exe.plan.precision == "highest"


@needs_amx
@pytest.mark.parametrize(("products", "tolerance"), [(3, 1.2e-5), (6, 2e-6)])
def test_a_built_model_is_right(high: Plan, products: int, tolerance: float) -> None:
    plan = Plan.from_yaml(high.to_yaml())
    for layer in plan:
        if layer.algorithm in AMX:
            layer.params["products"] = products
    inputs = models.inputs_for(model())
    expected = models.oracle(model(), inputs)
    found = tvm_ext.build(model(), SAPPHIRE, plan=plan)(inputs)
    for ours, theirs in zip(found, expected, strict=True):
        assert models.relative_error(ours, theirs) < tolerance


def _features(path: Path) -> set[str]:
    with zipfile.ZipFile(path) as file:
        return set(json.loads(file.read("metadata.json"))["features"])


@needs_amx
def test_saved_models_need_amx_only_if_a_kernel_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = models.inputs_for(model())
    results = {}
    for precision in ("highest", "high"):
        exe = tvm_ext.build(model(), tuning="none", precision=precision)
        exe.save(tmp_path / precision)
        results[precision] = exe(inputs)
        assert (set(FEATURES) <= _features(tmp_path / precision)) is bool(used(exe.plan))
    for precision, wanted in results.items():
        for ours, theirs in zip(tvm_ext.load(tmp_path / precision)(inputs), wanted, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    monkeypatch.setattr(target_module, "host_has_amx", lambda: False)
    assert tvm_ext.load(tmp_path / "highest").target.is_host
    with pytest.raises(ArtifactError, match=r"lacks: amx-bf16, amx-tile"):
        tvm_ext.load(tmp_path / "high")


def test_needed_instruction_sets(high: Plan) -> None:
    target = target_module.resolve(SAPPHIRE, "high")
    plain = compatibility.needed(Plan(target.name, []), target)
    assert not plain & set(FEATURES)
    assert compatibility.needed(high, target) == plain | set(FEATURES)


def test_command_line(tmp_path: Path, high: Plan) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(model().SerializeToString())
    words = ("plan", path, "--target", SAPPHIRE, "--tuning", "none", "-o", tmp_path / "plan.yaml")
    result = run_command(*words, "--precision", "high")
    assert result.exit_code == 0, result.stderr
    assert Plan.load(tmp_path / "plan.yaml") == high
    assert run_command(*words).exit_code == 0
    assert Plan.load(tmp_path / "plan.yaml").precision == "highest"
    fails("'low' is not one of 'highest', 'high'", *words, "--precision", "low", code=2)
