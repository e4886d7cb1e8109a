"""Options are checked when they are made."""

from __future__ import annotations

from typing import Any

import pytest

from tvm_ext.errors import TuningError
from tvm_ext.transfer.tune_options import TuningOptions, tracker_address


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "guess"}, r"method 'guess'; allowed: transfer, search, transfer\+search"),
        ({"budget_s": -1.0}, r"budget_s=-1\.0; allowed: 0 or more seconds, or None"),
        ({"budget_s": float("nan")}, "budget_s=nan"),
        ({"trials": 0}, "trials=0; allowed: 1 or more, or None"),
        ({"top_donors": 0}, "top_donors=0"),
        ({"prescreen": 0.0}, "prescreen=0.0; allowed: above 0, at most 1"),
        ({"prescreen": 1.5}, "prescreen=1.5"),
        ({"prescreen": float("nan")}, "prescreen=nan"),
        ({"records_per_kernel": 0}, "records_per_kernel=0; allowed: 1 or more"),
        ({"tracker": "here", "key": "cpu"}, "tracker='here'; allowed: host:port"),
        ({"tracker": "here:", "key": "cpu"}, "tracker='here:'"),
        ({"tracker": "here:70000", "key": "cpu"}, "tracker='here:70000'"),
        ({"tracker": "here:9190"}, "tracker='here:9190', key=''; allowed: both, or neither"),
        ({"key": "cpu"}, "tracker=None, key='cpu'; allowed: both, or neither"),
        ({"seed": 0}, "seed=0; allowed: 1 or more"),
        ({"method": "search", "budget_s": 0}, "'search' measures; with budget_s=0 use 'transfer'"),
        ({"method": "search"}, "doesn't end alone; give budget_s or trials"),
    ],
)
def test_what_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TuningError, match=message):
        TuningOptions(**options)


def test_methods() -> None:
    both = TuningOptions("transfer+search", trials=1)
    assert both.transfers
    assert both.searches
    assert not TuningOptions().searches
    assert not TuningOptions("search", budget_s=1).transfers


def test_tracker_address() -> None:
    assert tracker_address("192.168.0.2:9190") == ("192.168.0.2", 9190)
