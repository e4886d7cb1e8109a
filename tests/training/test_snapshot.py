"""A model comes back to what it was."""

from __future__ import annotations

from tests.training.networks import convnet, images, same
from tvm_ext.training.snapshot import Snapshot


def test_parameters_and_buffers_come_back() -> None:
    model, other = convnet(), convnet()
    snapshot = Snapshot(model)
    snapshot.restore()
    assert same(model, other)
    snapshot.take()
    model(next(iter(images()))[0])
    model[3].weight.data.zero_()
    assert not same(model, other)
    again = Snapshot(model)
    again.load_state_dict(snapshot.state_dict())
    again.restore()
    assert same(model, other)
