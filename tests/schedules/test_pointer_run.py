"""A loop over the runs of a pointer array, against NumPy's."""

from __future__ import annotations

import numpy as np
import tvm
from tvm.script.ir_builder import tirx as T

from tests.schedules.kernels import HOST
from tvm_ext.schedules import emit
from tvm_ext.schedules.pointer_run import pointer_run


def test_each_run_is_summed() -> None:
    def body() -> None:
        values, pointers = emit.argument("values", (9,)), emit.argument("pointers", (4,), "int32")
        out = emit.argument("out", (3,))
        with emit.loop(3) as i:
            T.buffer_store(out, 0.0, [i])
            with pointer_run(pointers, i) as j:
                T.buffer_store(out, out[i] + values[j], [i])

    module = tvm.compile(tvm.IRModule({"main": emit.build(body)}), target=HOST.tvm)
    values, pointers = np.arange(1, 10, dtype="float32"), np.array([0, 4, 4, 9], "int32")
    out = tvm.runtime.tensor(np.empty(3, "float32"))
    module["main"](tvm.runtime.tensor(values), tvm.runtime.tensor(pointers), out)
    assert out.numpy().tolist() == [1 + 2 + 3 + 4, 0, 5 + 6 + 7 + 8 + 9]
