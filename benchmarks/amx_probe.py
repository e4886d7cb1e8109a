"""What one instruction of AMX takes at the moment: hosts slow the unit down for a while."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tvm_ext.target import CpuTarget

# Products of tiles in a call: enough to take longer than the call itself.
PRODUCTS = 16384
_SUMS = 4


def probe(target: CpuTarget) -> Callable[[], float]:
    """Make something to call, that multiplies tiles of random numbers for a tenth of a millisecond.

    Returns
    -------
    callable
        Gives the seconds of one product of 16 x 32 and 32 x 16 values.
    """
    # Not before the number of threads is set.
    import tvm

    from tvm_ext.schedules import amx, emit

    def body() -> None:
        data = emit.argument("data", (2, 16, 16), "int32")
        out = emit.argument("out", (_SUMS, 16, 16))
        amx.request_permission()
        with amx.configured([16] * (_SUMS + 2)):
            for tile in range(_SUMS):
                amx.zero(tile)
            for i in range(2):
                amx.load(_SUMS + i, data, [i, 0, 0])
            with emit.loop(PRODUCTS // _SUMS):
                for tile in range(_SUMS):
                    amx.multiply_add(tile, _SUMS, _SUMS + 1)
            for tile in range(_SUMS):
                amx.store(tile, out, [tile, 0, 0])

    module = tvm.compile(tvm.IRModule({"main": emit.build(body)}), target=target.tvm).mod
    values = np.random.default_rng(0).uniform(-1, 1, (2, 16, 32)).astype("float32")
    words = (values.view("uint32") >> np.uint32(16)).astype("uint16").view("int32")
    arguments = [tvm.runtime.tensor(x) for x in (words, np.zeros((_SUMS, 16, 16), "float32"))]
    main = module["main"]

    def call() -> float:
        start = time.perf_counter()
        main(*arguments)
        return (time.perf_counter() - start) / PRODUCTS

    return call
