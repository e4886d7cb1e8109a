"""The table of quantised networks, from measurements made up."""

from benchmarks import bench_int8
from benchmarks.bench_int8 import HEADER, Row, cells

ROW = Row(
    "net", 2, 10.5,
    {"float32": 2.5, "ONNX Runtime int8": 1.25, "ONNX Runtime float32": 3.0}, 1, 1000, 1.0,
)  # fmt: skip


def test_a_row():
    assert dict(zip(HEADER, cells(ROW), strict=True)) == {
        "model": "net", "threads": "2", "int8, ms": "10.50", "float32 / int8": "2.50",
        "ONNX Runtime int8 / int8": "1.25", "ONNX Runtime float32 / int8": "3.00",
        "outputs that differ": "1 of 1000", "largest difference, steps": "1",
    }  # fmt: skip


def test_the_section():
    text = bench_int8.section([ROW], {"cpu": "A Fine CPU", "isa": ["avx512vnni"]})
    assert "on A Fine CPU, avx512vnni." in text and "| net | 2 | 10.50 |" in text
