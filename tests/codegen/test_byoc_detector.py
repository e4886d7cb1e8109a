"""A small text detector as PP-OCR's: one subgraph, and ONNX Runtime's bits on the simulator."""

import numpy as np
import pytest
import tvm
from tvm import relax

import tvm_ext
from benchmarks.integer_session import integer_session
from tests.codegen.quantized_detectors import pages, quantized_detector
from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.byoc import register
from tvm_ext.codegen.byoc.partition import partition
from tvm_ext.codegen.network_moves import Interleave
from tvm_ext.frontend import load_model

HARDWARE = Accelerator(sram_bytes=2**16)
FORMS = [
    (form, activations, per_channel)
    for form in ("QDQ", "QOperator")
    for activations in ("int8", "uint8")
    for per_channel in (False, True)
]


@pytest.mark.parametrize(("form", "activations", "per_channel"), FORMS)
def test_same_bits(form, activations, per_channel):
    model = quantized_detector(form, activations, per_channel)
    found = partition(load_model(model), HARDWARE)
    (subgraph,) = found.subgraphs
    assert found.share == 1
    # ONNX Runtime has a table for it.
    assert [r.operator for r in found.refusals] == ["sigmoid"]
    assert any(isinstance(layer, Interleave) for layer in subgraph.network.layers)
    register()
    machine = relax.VirtualMachine(tvm.compile(found.mod, target="llvm"), tvm.cpu())
    for x in pages(2, seed=3):
        expected = integer_session(model).run(None, {"x": x})[0]
        assert len(np.unique(expected)) > 30
        np.testing.assert_array_equal(machine["main"](tvm.runtime.tensor(x)).numpy(), expected)


def test_built():
    model = quantized_detector("QDQ", "uint8", True)
    exe = tvm_ext.build(model, accelerator=HARDWARE, tuning="none")
    assert [layer.device for layer in exe.plan].count("accelerator") == 1
    (x,) = pages(1, seed=4)
    np.testing.assert_array_equal(exe(x), integer_session(model).run(None, {"x": x})[0])
