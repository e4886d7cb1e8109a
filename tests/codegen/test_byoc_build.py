"""`tvm_ext.build` with an accelerator: one executable, saved and loaded in a fresh process."""

import subprocess
import sys

import numpy as np
import pytest

import tvm_ext
from benchmarks.integer_session import integer_session
from tests.codegen.qdq_models import QdqModel
from tests.codegen.quantized_cnns import images, quantized_model
from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.byoc import RUNTIME, SimulatedNetwork
from tvm_ext.codegen.byoc.partition import partition
from tvm_ext.codegen.errors import LoweringError
from tvm_ext.errors import PlanError
from tvm_ext.frontend import load_model
from tvm_ext.plan import Plan

HARDWARE = Accelerator(depthwise="hardware")


@pytest.fixture(scope="module")
def built():
    model = quantized_model("QDQ", "uint8")
    return model, tvm_ext.build(model, accelerator=HARDWARE, tuning="none")


def test_results_and_plan(built):
    model, exe = built
    session = integer_session(model)
    for x in images(4, seed=3):
        np.testing.assert_array_equal(exe(x), session.run(None, {"x": x})[0])
    layer = exe.plan["accelerator_0"]
    assert (layer.device, layer.algorithm) == ("accelerator", "offload")
    assert layer.ops.count("nn.conv2d") == 5
    (subgraph,) = partition(load_model(model), HARDWARE).subgraphs
    assert layer.gflop == pytest.approx(2e-9 * subgraph.macs)
    assert [x.device for x in exe.plan].count("cpu") == len(exe.plan) - 1


def test_plan_round_trips_and_is_checked(built):
    model, exe = built
    again = Plan.from_yaml(exe.plan.to_yaml())
    tvm_ext.build(model, accelerator=HARDWARE, plan=again, tuning="none")
    again["accelerator_0"].algorithm = "generic"
    with pytest.raises(PlanError, match="accelerator_0: algorithm 'generic'; allowed: offload"):
        tvm_ext.build(model, accelerator=HARDWARE, plan=again, tuning="none")


def test_what_stays_on_the_cpu_is_in_the_plan(built):
    assert built[1].plan.notes == []
    plan = tvm_ext.plan(built[0], accelerator=Accelerator(depthwise="none"), tuning="none")
    (note,) = [note for note in plan.notes if "depthwise" in note]
    assert note.startswith("on the CPU: ") and "nn.conv2d" in note
    assert "depthwise" in str(plan)
    assert Plan.from_yaml(plan.to_yaml()) == plan


def test_what_does_not_fit_stays_on_the_cpu(built):
    """Found when the model is built: nothing is left for the first run to refuse."""
    plan = tvm_ext.plan(built[0], accelerator=Accelerator(sram_bytes=120), tuning="none")
    reasons = [note for note in plan.notes if "bytes of SRAM; allowed: 120" in note]
    # The first convolution and the strided one need 144 bytes, the depthwise one 128.
    assert len(reasons) == 3
    assert all(note.startswith("on the CPU: ") and "(nn.conv2d)" in note for note in reasons)
    assert {layer.device for layer in plan} == {"accelerator", "cpu"}


def test_what_no_kernel_of_integers_computes_is_in_the_plan():
    q = QdqModel("uint8")
    x = q.input("x", (1, 6, 9, 8), zero=131)
    q.output(q.op("AveragePool", [x], 0.05, 131, kernel_shape=[3, 3]))
    plan = tvm_ext.plan(q.model(), tuning="none")
    (note,) = plan.notes
    assert note.startswith("on real values: ")
    assert note.endswith("(nn.avg_pool2d): no kernel of integers for averages that aren't global")


def test_fresh_process(built, tmp_path):
    model, exe = built
    exe.save(tmp_path / "m.tvmx")
    x = images(1, seed=4)[0]
    np.save(tmp_path / "x.npy", x)
    code = (
        "import sys, numpy, tvm_ext; folder = sys.argv[1];"
        "y = tvm_ext.load(folder + '/m.tvmx')(numpy.load(folder + '/x.npy'));"
        "numpy.save(folder + '/y.npy', y)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    expected = integer_session(model).run(None, {"x": x})[0]
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), expected)


def test_errors_of_the_engine_keep_their_type(built):
    _, exe = built

    def refuse(network, accelerator):
        raise LoweringError(f"{network.name}: nothing fits {accelerator.name}")

    RUNTIME.use(refuse)
    try:
        with pytest.raises(LoweringError, match="accelerator_0: nothing fits generic"):
            exe(images(1)[0])
    finally:
        RUNTIME.use(SimulatedNetwork)


def test_quantised_model_on_the_cpu_alone():
    model = quantized_model("QDQ", "uint8")
    exe = tvm_ext.build(model, tuning="none")
    assert not any(layer.device == "accelerator" for layer in exe.plan)
    # Weights are constants of the kernels: nothing dequantises them at run time.
    convolutions = [layer for layer in exe.plan if "nn.conv2d" in layer.ops]
    assert len(convolutions) == 5
    assert all(layer.algorithm != "generic" for layer in convolutions)
    x = images(1, seed=5)[0]
    expected = integer_session(model).run(None, {"x": x})[0]
    assert np.abs(exe(x) - expected).max() <= 0.05 * np.abs(expected).max()
