"""Errors that a pass raises come out of TVM's pass pipeline as they went in."""

import pytest
import tvm

from tvm_ext import errors

PLAIN = [
    errors.TvmExtError, errors.OptionError, errors.PruningError, errors.PlanError,
    errors.ModelError, errors.TargetError, errors.DatabaseError,
]  # fmt: skip


@pytest.mark.parametrize("error", PLAIN)
def test_pass_raises_it(error):
    @tvm.transform.module_pass(opt_level=0, name="Failing")
    class Failing:
        def transform_module(self, mod, context):
            raise error("layer conv1: density 2")

    with pytest.raises(error, match="layer conv1: density 2") as caught:
        tvm.transform.Sequential([Failing()])(tvm.IRModule())
    assert type(caught.value) is error
