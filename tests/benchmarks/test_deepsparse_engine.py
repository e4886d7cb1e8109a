"""The worker and its messages, with a stand-in for DeepSparse, and with it where it is there."""

import sys
import textwrap
import time

import numpy as np
import pytest

from benchmarks import deepsparse_engine
from benchmarks.deepsparse_engine import INTERPRETER, DeepSparseEngine, DeepSparseError
from benchmarks.zoo.builder import GraphBuilder

STAND_IN = """
    import sys, time
    __version__ = "0.0"
    class Engine:
        def run(self, arrays):
            print("noise on standard output")
            time.sleep(0.02)
            return [arrays[0] * 2, arrays[1]]
    def compile_model(path, batch_size, num_cores):
        if "missing" in path:
            raise ValueError("no such\\nfile")
        if "quit" in path:
            sys.exit(3)
        assert (batch_size, num_cores) == (None, 2)
        return Engine()
"""
INPUTS = {"gpu_0/x": np.arange(3.0, dtype="float32"), "y": np.ones((2, 2), "float32")}


@pytest.fixture
def stand_in(monkeypatch, tmp_path):
    """A Python that finds a module `deepsparse`, isolated or not."""
    (tmp_path / "deepsparse.py").write_text(textwrap.dedent(STAND_IN))
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nshift\nPYTHONPATH={tmp_path} exec {sys.executable} -P "$@"\n')
    if sys.version_info < (3, 11):
        python.write_text(python.read_text().replace(" -P", ""))
    python.chmod(0o755)
    monkeypatch.setenv(INTERPRETER, str(python))


def test_outputs_and_version(stand_in, tmp_path):
    with DeepSparseEngine(tmp_path / "model.onnx", INPUTS, 2) as engine:
        assert engine.version == "0.0"
        engine()
        double, same = engine.outputs()
    np.testing.assert_array_equal(double, [0, 2, 4])
    np.testing.assert_array_equal(same, np.ones((2, 2)))


def test_its_clock_runs_as_long_as_the_worker_says(stand_in, tmp_path):
    with DeepSparseEngine(tmp_path / "model.onnx", INPUTS, 2) as engine:
        real, clock = time.perf_counter(), engine.clock()
        engine()
        real, clock = time.perf_counter() - real, engine.clock() - clock
    assert 0.02 <= clock <= real
    assert engine.idle_s > 0


def test_a_model_that_it_does_not_take(stand_in, tmp_path):
    with pytest.raises(DeepSparseError, match="ValueError: no such file"):
        DeepSparseEngine(tmp_path / "missing.onnx", INPUTS, 2)


def test_a_process_that_ends(stand_in, tmp_path):
    with pytest.raises(DeepSparseError, match="its process has ended"):
        DeepSparseEngine(tmp_path / "quit.onnx", INPUTS, 2)
    engine = DeepSparseEngine(tmp_path / "model.onnx", INPUTS, 2)
    engine._process.kill()
    engine._process.wait()
    with pytest.raises(DeepSparseError, match="its process has ended"):
        engine()
    engine.close()


def test_no_interpreter(monkeypatch, tmp_path):
    monkeypatch.setenv(INTERPRETER, str(tmp_path / "nowhere"))
    with pytest.raises(DeepSparseError, match=r"not installed: there is no .*nowhere"):
        DeepSparseEngine(tmp_path / "model.onnx", INPUTS, 1)


def test_deepsparse_itself(tmp_path):
    try:
        deepsparse_engine.interpreter()
    except DeepSparseError as error:
        pytest.skip(str(error))
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((16, 8, 1, 1)).astype("float32")
    graph = GraphBuilder("g")
    x = {"x": rng.standard_normal((1, 8, 6, 6)).astype("float32")}
    model = graph.model(x, graph.conv("x", "c", weight), (1, 16, 6, 6))
    path = tmp_path / "conv.onnx"
    path.write_bytes(model.SerializeToString())
    with DeepSparseEngine(path, x, 1) as engine:
        engine()
        (got,) = engine.outputs()
    wanted = np.einsum("kc,nchw->nkhw", weight[:, :, 0, 0].astype("f8"), x["x"])
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)
