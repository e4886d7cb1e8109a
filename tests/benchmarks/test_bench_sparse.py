"""The section of pruned models, and that every case can be pruned."""

import pytest
from click.testing import CliRunner

from benchmarks import bench_sparse, harness, results, zoo
from benchmarks.bench_sparse import CASES
from benchmarks.magnitude import SCHEMES
from benchmarks.sparse_row import DEEPSPARSE, DENSE, ORT, OURS, Row

MACHINE = {
    "cpu": "A Fine CPU",
    "logical_cpus": 2,
    "isa": ["avx2"],
    "python": "3.12.0",
    "versions": {"numpy": "2.0"},
}
TIMES = harness.Result({OURS: (1e-3,), DENSE: (2e-3,), ORT: (4e-3,), DEEPSPARSE: (3e-3,)})


def test_every_case_names_a_model_and_a_scheme():
    for case in CASES:
        assert zoo.recipe(case.model).name == case.model
        assert case.scheme in SCHEMES
        assert 0 < case.density < 1
    assert len(set(CASES)) == len(CASES)


def test_section():
    rows = [
        Row(CASES[0], TIMES, 0.25, 1e-6, 1e-6, (1, 2), "1.8.0"),
        Row(CASES[2], TIMES, 0.5, 0.5, 1e-6, (1, 2), "1.8.0"),
        Row(CASES[5], failure="ValueError: no"),
    ]
    text = bench_sparse.section(rows, 2, MACHINE)
    assert "## Pruned models, 2 threads" in text
    assert (
        "--threads 2 --models resnet50 --models vgg19 --models seq2seq_lstm` on A Fine CPU" in text
    )
    assert "numpy 2.0, DeepSparse 1.8.0." in text
    assert "5.0e-01 WRONG" in text
    assert "failed: ValueError: no" in text
    # (4 ms x 0.25) / 1 ms, of the one that is right.
    assert "share of the expected speed-up: 1.00 over 1 of 3 models" in text
    assert bench_sparse.summary(rows[1:]) == "None of 2 models ran with right outputs."


@pytest.mark.parametrize(("error", "code"), [(1e-6, 0), (0.5, 1)])
def test_command_line(monkeypatch, error, code):
    """It runs the chosen cases, writes a section a number of threads, and fails with them."""
    written, asked = {}, []

    def bench_case(case, threads, options):
        asked.append(case)
        assert options == {"rounds": 2, "min_time_s": 0.1}
        return {count: Row(case, TIMES, 0.2, error, 0.0, (1, 2), "1.8.0") for count in threads}

    monkeypatch.setattr(bench_sparse, "bench_case", bench_case)
    monkeypatch.setattr(bench_sparse, "prepare_tvm_threads", lambda most: None)
    monkeypatch.setattr(results, "write_section", written.__setitem__)
    options = ["--models", "vgg19", "--rounds", "2", "--min-time", "0.1", "--write"]
    result = CliRunner().invoke(bench_sparse.main, options)
    assert result.exit_code == code
    assert asked == [case for case in CASES if case.model == "vgg19"]
    assert list(written) == ["sparse-models-1-threads", "sparse-models-2-threads"]
