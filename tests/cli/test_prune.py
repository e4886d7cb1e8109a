"""`tvm-ext prune`: the zeros in the files that it writes, its table, and what it says of errors."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import tvm_ext
from tests import models
from tests.cli.commands import fails, run_command
from tests.test_pruned_onnx import largest_quarter, weights_of
from tvm_ext.passes.pruning import MagnitudePrune

DENSE = weights_of(models.convnet())
BLOCK = ("--scheme", "block", "--density", "0.25", "--block", "4x1000")
MAGNITUDE = ("--scheme", "magnitude", "--density", "0.25")


def pruned(model: Path, output: Path, *words: str | Path) -> dict[str, np.ndarray]:
    """The initialisers of the file that the command writes."""
    result = run_command("prune", model, "-o", output, *words)
    assert result.exit_code == 0, result.stderr
    return weights_of(onnx.load(output))


def share(weights: np.ndarray) -> float:
    return np.count_nonzero(weights) / weights.size


def test_magnitude(convnet_onnx: Path, tmp_path: Path) -> None:
    output = tmp_path / "pruned.onnx"
    found = pruned(convnet_onnx, output, *MAGNITUDE)
    for name, dense in DENSE.items():
        expected = largest_quarter(dense) if name in ("w1", "w2") else dense
        np.testing.assert_array_equal(found[name], expected)
    inputs = models.inputs_for(models.convnet())
    (expected,) = models.oracle(onnx.load(output), inputs)
    assert models.relative_error(tvm_ext.build(output)(inputs["x"]), expected) < models.RTOL


def test_blocks_share_their_zeros(convnet_onnx: Path, tmp_path: Path) -> None:
    found = pruned(convnet_onnx, tmp_path / "pruned.onnx", *BLOCK)
    assert share(found["w2"]) == pytest.approx(0.25, abs=0.01)
    kept = found["w2"].reshape(8, 4, -1) != 0
    assert (kept == kept[:, :1]).all()


def test_patterns_and_a_density(convnet_onnx: Path, tmp_path: Path) -> None:
    output = tmp_path / "pruned.onnx"
    found = pruned(convnet_onnx, output, "--scheme", "pattern", "--lanes", "16", "--all")
    for name in ("w0", "w2"):
        taps = np.count_nonzero(found[name], axis=(2, 3))
        assert (taps == 4).all()
        kept = found[name].reshape(-1, 16, *found[name].shape[1:]) != 0
        assert (kept == kept[:, :1]).all()
    np.testing.assert_array_equal(found["w1"], DENSE["w1"])
    found = pruned(
        convnet_onnx, output, "--scheme", "pattern", "--entries", "3", "--density", "0.2"
    )
    assert set(np.count_nonzero(found["w2"], axis=(2, 3)).flat) == {0, 3}
    assert share(found["w2"]) == pytest.approx(0.2, abs=0.01)


def test_which_layers(convnet_onnx: Path, tmp_path: Path) -> None:
    output = tmp_path / "pruned.onnx"

    def shares(*words: str) -> list[float]:
        found = pruned(convnet_onnx, output, *MAGNITUDE, *words)
        return [round(share(found[f"w{i}"]), 2) for i in range(4)]

    assert shares("--all") == [0.25, 0.25, 0.25, 0.25]
    assert shares("--include", "c1", "--include", "sco*") == [1, 0.25, 1, 1]
    assert shares("--exclude", "c*") == [1, 1, 1, 0.25]
    assert shares("--layer-density", "c1=0.5") == [1, 0.5, 0.25, 1]


def test_speedup(convnet_onnx: Path, tmp_path: Path) -> None:
    words = ("--scheme", "block", "--block", "16x1000", "--speedup", "1.5")
    slower, faster = (
        share(pruned(convnet_onnx, tmp_path / "pruned.onnx", *words, *more)["w2"])
        for more in ((), ("--speedup", "2", "--target", "core-avx2"))
    )
    assert 0 < faster < slower < 1


def test_table_and_report(convnet_onnx: Path, tmp_path: Path) -> None:
    output, report = tmp_path / "pruned.onnx", tmp_path / "report.json"
    result = run_command("prune", convnet_onnx, "-o", output, *MAGNITUDE, "--report", report)
    assert result.exit_code == 0, result.stderr
    _, expected = tvm_ext.prune(convnet_onnx, MagnitudePrune(0.25))
    assert result.stdout.startswith(str(expected))
    last = result.stdout.splitlines()[-1]
    found = weights_of(onnx.load(output))
    kept = sum(np.count_nonzero(found[f"w{i}"]) for i in range(4))
    total = sum(DENSE[f"w{i}"].size for i in range(4))
    assert last.startswith(f"{output}: ONNX; density {kept / total:.3f}, ")
    rows = json.loads(report.read_text())
    assert [row["name"] for row in rows] == ["c0", "c1", "c2", "scores"]
    for row, name in zip(rows, ("w0", "w1", "w2", "w3"), strict=True):
        assert row["density"] == share(found[name])
        energy = np.square(found[name], dtype="float64").sum()
        assert row["kept_energy"] == pytest.approx(
            energy / np.square(DENSE[name], dtype="float64").sum()
        )


def test_channels_are_another_graph(convnet_onnx: Path, tmp_path: Path) -> None:
    output = tmp_path / "smaller.onnx"

    def shapes(*words: str) -> list[tuple[int, ...]]:
        found = pruned(convnet_onnx, output, "--scheme", "channel", *words)
        convs = (node for node in onnx.load(output).graph.node if node.op_type == "Conv")
        return [found[node.input[1]].shape for node in convs]

    assert shapes("--density", "0.5") == [(16, 3, 3, 3), (8, 16, 1, 1), (16, 16, 3, 3)]
    thin = shapes("--density", "0.3", "--multiple", "1", "--include", "c2")
    assert thin == [(16, 3, 3, 3), (16, 16, 1, 1), (10, 16, 3, 3)]


def test_relax(convnet_onnx: Path, tmp_path: Path) -> None:
    """A module that is no ONNX becomes a new graph."""
    output = tmp_path / "pruned.json"
    assert run_command("prune", convnet_onnx, "-o", output, *MAGNITUDE).exit_code == 0
    again = tmp_path / "again.onnx"
    found = pruned(output, again, "--scheme", "magnitude", "--density", "0.5", "--include", "c1")
    shares = {w.shape: share(w) for w in found.values() if w.ndim == 4}
    # The half that is asked for has zeros in it already.
    assert shares[(16, 16, 1, 1)] == 0.25
    assert shares[(32, 16, 3, 3)] == 0.25


def test_open_dimensions(tmp_path: Path) -> None:
    model = models.convnet()
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    path, output = tmp_path / "open.onnx", tmp_path / "pruned.onnx"
    path.write_bytes(model.SerializeToString())
    fails("dimension 0 is dynamic", "prune", path, "-o", output, *MAGNITUDE)
    pruned(path, output, *MAGNITUDE, "--input-shape", "x:1,3,12,12")
    assert onnx.load(output).graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"


def test_errors(convnet_onnx: Path, tmp_path: Path) -> None:
    output = tmp_path / "pruned.onnx"

    def refuses(message: str, *words: str, model: Path = convnet_onnx) -> None:
        fails(message, "prune", model, "-o", output, *words)

    refuses(r"density=2\.0 has to be a number in \(0, 1\]", "--scheme", "block", "--density", "2")
    refuses(r"density of 'c1' is|density of 'c1'=0\.0 has", *MAGNITUDE, "--layer-density", "c1=0")
    refuses("include='c9' matches no layer .*: c0, c1, c2, scores", *MAGNITUDE, "--include", "c9")
    refuses("density='c9' matches no layer", *MAGNITUDE, "--layer-density", "c9=0.1")
    refuses("no layer is left to prune", *MAGNITUDE, "--exclude", "*")
    refuses(r"block rows=0 has to be a whole", *BLOCK, "--block", "0x4")
    refuses("scope='x' is not one of layer, global", *MAGNITUDE, "--scope", "x")
    refuses(r"speedup of '\*' is 0\.5", "--scheme", "block", "--speedup", "0.5")
    refuses("keep 0.000 to 0.444", "--scheme", "pattern", "--density", "0.9")
    refuses("unknown mcpu", *MAGNITUDE, "--target", "core-avx9")
    refuses(r"gone\.onnx: no such file", *MAGNITUDE, model=tmp_path / "gone.onnx")
    broken = models.convnet()
    weights = DENSE["w2"].copy()
    weights[1, 2, 0, 0] = np.nan
    broken.graph.initializer[3].CopyFrom(numpy_helper.from_array(weights, "w2"))
    path = tmp_path / "nan.onnx"
    path.write_bytes(broken.SerializeToString())
    refuses(r"layer c2: the weight at \(1, 2, 0, 0\) is nan", *MAGNITUDE, model=path)
    fails(r"allowed: \.onnx .*\.json", "prune", path, "-o", tmp_path / "x.py", *MAGNITUDE)
    refuses(r"can't write .*report\.json", *BLOCK, "--report", str(tmp_path / "no" / "report.json"))
    assert [p.name for p in tmp_path.iterdir()] == ["nan.onnx"]


def test_usage(convnet_onnx: Path, tmp_path: Path) -> None:
    output = tmp_path / "pruned.onnx"

    def usage(message: str, *words: str) -> None:
        fails(message, "prune", convnet_onnx, "-o", output, *words, code=2)

    usage("Missing option '--scheme'")
    usage("--scheme block needs --density or --speedup", "--scheme", "block")
    usage("--scheme channel needs --density\n", "--scheme", "channel")
    usage("--lanes is no option of --scheme magnitude", *MAGNITUDE, "--lanes", "4")
    usage("each decides how much", *MAGNITUDE, "--speedup", "2")
    usage(
        "--layer-density and --speedup are no options of --scheme channel",
        *("--scheme", "channel", "--density", "0.5", "--layer-density", "c1=0.1"),
    )
    usage("--output writes that file", *MAGNITUDE, "--report", str(output))
    usage("'4by4' is not like 4x16, or auto", *BLOCK, "--block", "4by4")
    usage("'c1' is not like conv1=0.1", *MAGNITUDE, "--layer-density", "c1")
    assert not output.exists()
