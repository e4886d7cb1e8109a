"""The table of sparse kernels, from measurements made up."""

from benchmarks import bench_sparse_kernels
from benchmarks.bench_sparse_kernels import DENSITIES, HEADER, SHAPES, Row
from benchmarks.sparse_kernels import Measured, Point

MACHINE = {"cpu": "A Fine CPU", "isa": ["avx2"]}


def measured(refused=None):
    block = [
        Point(density, density * 1e-3, 0.9, density, 2 * density)
        for density in (0.05, 0.1, 0.25, 0.5, 0.75)
    ]
    fkw = [Point(density, 2e-3, 0.4, 2.0, 4.0) for density in (0.05, 0.1, 0.25, 4 / 9)]
    direct, dense = ("spatial_pack", 1e-3, 0.8), ("winograd_4x4", 5e-4, 1.6)
    return Measured(direct, dense, {"block_sparse": block, "fkw": fkw}, refused or {})


def test_a_row_for_each_algorithm():
    block, fkw = (
        dict(zip(HEADER[:6], line[:6], strict=True)) for line in Row("shape", measured()).cells()
    )
    assert (block["shape"], block["algorithm"]) == ("shape", "block_sparse")
    assert block["density 0.05"] == "0.050 ms 90%"
    assert block["density 0.5"] == "0.500 ms 90%"
    assert fkw["density 0.5"] == "2.000 ms 40% (at 0.44)"


def test_both_break_evens():
    block, fkw = (line[6:] for line in Row("shape", measured()).cells())
    assert block == ["spatial_pack 1.000 ms 80%", ">0.75", "winograd_4x4 0.500 ms 160%", "0.50"]
    assert fkw == ["spatial_pack 1.000 ms 80%", "<0.05", "winograd_4x4 0.500 ms 160%", "<0.05"]


def test_refusals_and_missing_algorithms_are_shown():
    rows = [Row("shape", measured({"csr": "too odd"}))]
    text = bench_sparse_kernels.section(rows, ["lost"], MACHINE)
    assert "| shape | csr | refused: too odd |" in text
    assert "Not measured, since no algorithm has the name: lost." in text
    assert "Not measured" not in bench_sparse_kernels.section(rows, [], MACHINE)


def test_shapes_are_different_and_densities_rise():
    shapes = [shape for network in SHAPES.values() for shape in network]
    assert len(set(shapes)) == len(shapes)
    assert list(DENSITIES) == sorted(DENSITIES)
