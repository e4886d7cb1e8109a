"""Answers to fusion's open questions: estimated, measured and kept."""

import json
from dataclasses import replace

import numpy as np
import pytest
from tvm import relax

import tvm_ext
from tests.passes.relax_models import array, const, module
from tvm_ext import planner
from tvm_ext.errors import DatabaseError
from tvm_ext.fusion_database import FusionDatabase, Record
from tvm_ext.fusion_profile import CostProfile, MeasuredProfile
from tvm_ext.layers import layers
from tvm_ext.passes import UniversalFusion
from tvm_ext.passes import dataflow as df
from tvm_ext.target import resolve

TARGET = resolve()
NEON = "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72"


def _transposed(size):
    """A product with a transposed tensor: Shuffle before Many-to-Many is an open question."""

    def body(emit, x, y):
        return relax.op.matmul(x, emit(relax.op.permute_dims(y, (0, 2, 1))))

    return module({"x": (2, size, 8), "y": (2, size, 8)}, body)


def _groups(mod, profile):
    return len(df.bindings(UniversalFusion(profile)(mod)["main"])) - 1


def _count(calls, answer):
    def profile(one, parts):
        calls.append((len(one), [len(part) for part in parts]))
        return answer

    return profile


def test_the_profile_decides():
    for answer, groups in ((True, 1), (False, 2)):
        calls = []
        assert _groups(_transposed(16), _count(calls, answer)) == groups
        assert (2, [1, 1]) in calls


def test_the_cost_model_saves_the_transposition():
    assert _groups(_transposed(16), CostProfile(TARGET)) == 1


class _Estimates(CostProfile):
    """What one kernel costs, in that of its parts, is given."""

    def __init__(self, one):
        super().__init__(TARGET)
        self.one = one

    def _plan(self, groups):
        return [], self.one if len(groups) == 1 else 1.0


def _normed():
    def body(emit, x):
        ones, zeros = const(np.ones(32, "f4")), const(np.zeros(32, "f4"))
        x = emit(relax.op.nn.layer_norm(x, ones, zeros, axes=-1))
        return relax.op.matmul(x, const(np.full((32, 16), 0.5, "f4")))

    return module({"x": (8, 32)}, body)


def test_a_norm_joins_its_product_at_a_tie_and_a_transposition_for_a_gain():
    for model, threshold in ((_normed(), 1.01), (_transposed(16), 0.98)):
        assert _groups(model, _Estimates(threshold)) == 1
        assert _groups(model, _Estimates(threshold + 0.015)) == 2


def test_measured_answers_are_kept(tmp_path):
    path = tmp_path / "fusion.jsonl"
    database = FusionDatabase(path)
    groups = _groups(_transposed(16), MeasuredProfile(TARGET, database))
    (line,) = path.read_text().splitlines()
    record = json.loads(line)
    assert record["target"] == TARGET.name
    assert 0.1 < record["fused_us"] < 1e4
    assert 0.1 < record["split_us"] < 1e4
    assert groups == (1 if record["fused_us"] <= record["split_us"] else 2)


@pytest.mark.parametrize(("fused", "groups"), [(1.0, 1), (3.0, 2)])
def test_a_record_is_obeyed_without_measuring(tmp_path, monkeypatch, fused, groups):
    path = tmp_path / "fusion.jsonl"
    _groups(_transposed(16), MeasuredProfile(TARGET, FusionDatabase(path)))
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "fused_us": fused, "split_us": 2.0}) + "\n")
    monkeypatch.setattr("tvm_ext.fusion_profile.measure_layers", None)
    assert _groups(_transposed(16), MeasuredProfile(TARGET, FusionDatabase(path))) == groups


def test_other_shapes_and_targets_are_other_records(tmp_path):
    database = FusionDatabase(tmp_path / "fusion.jsonl")
    database.add(Record("a", "x", 1.0, 2.0))
    assert database.find("a", "x") == Record("a", "x", 1.0, 2.0)
    assert database.find("a", "y") is None
    assert database.find("b", "x") is None
    for size in (16, 24):
        _groups(_transposed(size), MeasuredProfile(TARGET, database))
    assert len(database) == 3


@pytest.mark.parametrize("line", ["{", "[]", '{"key": "a"}', '{"key": "a", "target": "b"}'])
def test_a_line_that_is_no_record_is_named(tmp_path, line):
    path = tmp_path / "fusion.jsonl"
    FusionDatabase(path).add(Record("a", "x", 1.0, 2.0))
    with path.open("a") as file:
        file.write(line + "\n")
    with pytest.raises(DatabaseError, match=r"fusion\.jsonl, line 2: not a fusion record"):
        FusionDatabase(path)


def test_build_measures_into_the_file(tmp_path):
    path = tmp_path / "sub" / "fusion.jsonl"
    mod = _transposed(16)
    exe = tvm_ext.build(mod, fusion_database=path)
    x, y = array(0, 2, 16, 8), array(1, 2, 16, 8)
    np.testing.assert_allclose(exe([x, y]), x @ y.transpose(0, 2, 1), rtol=1e-4, atol=1e-5)
    assert len(path.read_text().splitlines()) == 1
    assert tvm_ext.plan(mod, fusion_database=path).to_yaml() == exe.plan.to_yaml()
    assert len(path.read_text().splitlines()) == 1


def test_other_machines_cant_be_measured(tmp_path):
    target = {"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "neoverse-n1"}
    with pytest.raises(DatabaseError, match="isn't this machine"):
        tvm_ext.plan(_transposed(16), target, fusion_database=tmp_path / "fusion.jsonl")


def test_constants_are_part_of_what_is_measured(tmp_path):
    def body(emit, x):
        y = emit(relax.op.matmul(x, const(array(0, 8, 8))))
        return relax.op.nn.relu(emit(relax.op.permute_dims(y, (1, 0))))

    database = FusionDatabase(tmp_path / "fusion.jsonl")
    mod = module({"x": (16, 8)}, body)
    assert _groups(mod, MeasuredProfile(TARGET, database)) >= 1


def _pooled(channels, size, window, stride):
    def body(emit, x):
        w = const(array(0, 64, channels, 3, 3) / np.float32(3 * channels**0.5))
        y = emit(relax.op.nn.relu(emit(relax.op.nn.conv2d(x, w, padding=1))))
        return relax.op.nn.max_pool2d(y, window, (stride, stride))

    return module({"x": (1, channels, size, size)}, body)


@pytest.mark.parametrize(
    "target", [TARGET, replace(TARGET, cores=1), resolve(NEON)], ids=["host", "one core", "NEON"]
)
def test_the_pool_of_a_first_layer_pays(target):
    """Its output is many times as large as all that it reads."""
    assert _groups(_pooled(3, 224, (2, 2), 2), CostProfile(target)) == 1


def test_rows_that_every_task_of_a_pool_repeats_do_not_pay():
    """A window as tall as the map leaves one task, and with it one core."""
    # Not the host's peak and bandwidth, which are measured.
    profile = CostProfile(replace(resolve(NEON), cores=64))
    assert _groups(_pooled(64, 56, (56, 1), 1), profile) == 2


def test_steps_that_no_kernel_takes_stay_outside():
    """A depthwise convolution computes nothing before it; TVM's own operator would."""

    def body(emit, x):
        y = emit(relax.op.multiply(x, const(array(0) + np.float32(2))))
        y = emit(relax.op.add(y, const(array(1))))
        w = const(array(2, 32, 1, 3, 3))
        y = emit(relax.op.nn.conv2d(y, w, strides=2, padding=1, groups=32))
        return relax.op.add(y, const(array(3, 1, 32, 1, 1)))

    target = resolve("znver4")
    mod = UniversalFusion(CostProfile(target))(module({"x": (1, 32, 320, 320)}, body))
    assert not any(layer.fallback for layer in planner.choose(layers(mod), target))
