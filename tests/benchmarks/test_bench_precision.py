"""The table of precisions, from measurements made up, and the probe."""

from benchmarks import bench_precision, harness
from benchmarks.amx_probe import PRODUCTS, probe
from benchmarks.bench_precision import HEADER, Row, cells
from tests.schedules.amx_kernels import HIGH, needs_amx

FAST, SLOW = 5.5e-9 * PRODUCTS, 25e-9 * PRODUCTS
ROW = Row(
    "net", 1,
    harness.Result({
        "highest": (0.04, 0.06, 0.04, 0.04), "high": (0.02, 0.03, 0.02, 0.02),
        "ONNX Runtime": (0.05, 0.075, 0.05, 0.05), "AMX": (FAST, SLOW, FAST, FAST),
    }),
    {"highest": 2e-6, "high": 1.5e-4}, 60, 40,
)  # fmt: skip


def test_a_row():
    assert dict(zip(HEADER, cells(ROW), strict=True)) == {
        "model": "net", "threads": "1", "highest, ms": "40.00", "high, ms": "20.00",
        "highest / high": "2.00", "ONNX Runtime / highest": "1.25", "ONNX Runtime / high": "2.50",
        "error of highest": "2.0e-06", "error of high": "1.5e-04", "layers on AMX": "40 of 60",
        "AMX slowed down": "25% of rounds",
    }  # fmt: skip


def test_the_section():
    text = bench_precision.section([ROW], {"cpu": "A Fine CPU", "isa": ["amx_tile"]})
    assert "on A Fine CPU, amx_tile." in text
    assert "took over 10.7 ns" in text
    assert "| net | 1 | 40.00 |" in text


@needs_amx
def test_the_probe_takes_as_long_as_the_instruction_can():
    """16 cycles at 5 GHz at best."""
    seconds = min(probe(HIGH)() for _ in range(3))
    assert 3e-9 < seconds < 1e-6
