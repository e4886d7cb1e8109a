"""One operator of a rule by itself: where channels go, and what it computes without some."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tvm import relax

from tests.passes.pruning.channel_evaluation import evaluate
from tests.passes.relax_models import array, module
from tvm_ext.passes import dataflow as df
from tvm_ext.passes.pruning import prunables
from tvm_ext.passes.pruning.channel_labels import Labels
from tvm_ext.passes.pruning.channel_rule import Rule
from tvm_ext.passes.pruning.channel_shrink import Shrink
from tvm_ext.passes.pruning.channel_step import Channels, Step, each


class OneCall:
    """A call of a tensor ``x`` that has channels along one axis.

    Parameters
    ----------
    rules : dict of str to Rule
    make : callable
        ``make(x)``: the call.
    shape : sequence of int
        Of ``x``.
    axis : int
    notes : dict of str to str
        For layers why they are left alone.
    sums : bool
        Whether the call sums over the channels of ``x``.
    """

    def __init__(
        self,
        rules: dict[str, Rule],
        make: Callable[[Any], Any],
        shape: Sequence[int],
        axis: int,
        notes: dict[str, str] | None = None,
        sums: bool = False,
    ) -> None:
        self.axis, self.shape, self.sums = axis, tuple(shape), sums
        self.mod = module({"x": self.shape}, lambda emit, x: emit(make(x)))
        (self.param,) = self.mod["main"].params
        self.var, self.call = next(p for p in df.bindings(self.mod["main"]) if df.op_name(p[1]))
        layers = {v: layer for layer in prunables(self.mod) for v, _ in layer.uses}
        self.channels = Channels(layers, notes or {}, False)
        self.ids = self.channels.ids.fresh(self.shape[axis])
        own = [self.ids if i == axis else None for i in range(len(self.shape))]
        self.channels.record(self.param, Labels(tuple(own)))
        self.rule = rules[df.op_name(self.call)]
        self.step = Step(self.channels, self.var, self.call)
        self.channels.record(self.var, self.rule.follow(self.step))

    @property
    def axes(self) -> list[tuple[Any, ...]]:
        """The channels of the result's axes; of each field of a tuple."""
        return [labels.axes for labels in each(self.channels.values[self.var])]

    @property
    def reason(self) -> str:
        """Why the channels of ``x`` stay; an empty string if they can go."""
        reasons = self.channels.ids.reasons()
        found = {reasons.get(int(root), "") for root in self.channels.ids.roots(self.ids)}
        assert len(found) == 1
        return found.pop()

    def check_numbers(self) -> None:
        """Every element of the result has the channel that NumPy moves there."""
        turned = self.ids.reshape([-1 if i == self.axis else 1 for i in range(len(self.shape))])
        moved = evaluate(self.mod, np.broadcast_to(turned, self.shape))
        moved = moved if isinstance(moved, list) else [moved]
        for axes, values in zip(self.axes, moved, strict=True):
            ((place, ids),) = [(i, axis) for i, axis in enumerate(axes) if axis is not None]
            shape = [-1 if i == place else 1 for i in range(values.ndim)]
            np.testing.assert_array_equal(values, np.broadcast_to(ids.reshape(shape), values.shape))

    def check_shrunk(self, gone: Sequence[int], others: Sequence[int] = ()) -> None:
        """Without some channels it computes what is left of all.

        Parameters
        ----------
        gone : sequence of int
            Of ``x``; in a sum over them, their elements are zeros.
        others : sequence of int
            Ids of more channels that go.
        """
        ids = self.channels.ids
        roots = ids.roots(np.arange(len(ids)))
        kept = ~np.isin(roots, roots[[*self.ids[list(gone)], *others]])
        data = array(3, *self.shape)
        if self.sums:
            data = np.moveaxis(data, self.axis, -1) * kept[self.ids]
            data = np.moveaxis(data, -1, self.axis)
        shrink = Shrink(kept, self.channels.joints)
        less = data.compress(kept[self.ids], self.axis)

        def body(emit: Any, x: Any) -> Any:
            return emit(self.rule.shrink(shrink, self.step, self._of(x)))

        found, expected = evaluate(module({"x": less.shape}, body), less), evaluate(self.mod, data)
        if not isinstance(found, list):
            found, expected = [found], [expected]
        for axes, ours, whole in zip(self.axes, found, expected, strict=True):
            for place, ids in enumerate(axes):
                whole = whole if ids is None else whole.compress(kept[ids], place)
            np.testing.assert_allclose(ours, whole, rtol=1e-12, atol=1e-12)

    def _of(self, x: Any) -> relax.Call:
        """The call of another tensor."""

        def other(arg: Any) -> Any:
            if isinstance(arg, relax.Tuple):
                return relax.Tuple([other(field) for field in arg.fields])
            return x if isinstance(arg, relax.Var) else arg

        call = self.call
        return relax.Call(call.op, [other(a) for a in call.args], call.attrs, call.ty_args)
