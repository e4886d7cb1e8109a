"""The pool benchmark on a tiny shape: it builds both ways, checks them and fills its row."""

from benchmarks import bench_pools
from benchmarks.bench_pools import Shape

TINY = Shape("tiny", (16, 16), 12, 3, 1, 1, (2, 2, 0))


def test_a_row():
    name, threads, algorithm, pair, one, ratio, error = bench_pools.compare(TINY, 1, 1)
    assert (name, threads) == ("tiny", "1")
    assert algorithm in ("winograd_2x2", "winograd_4x4", "spatial_pack", "conv_direct")
    assert float(error) < 1e-3
    assert float(ratio) > 0 and float(pair) >= 0 and float(one) >= 0
