"""Each check names option and value, and says what is allowed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tvm_ext.errors import OptionError
from tvm_ext.passes.pruning.options import check_choice, check_count, check_density


@pytest.mark.parametrize("value", [1, 1.0, 0.5, 1e-9, np.float32(0.5)])
def test_shares_are_taken(value: Any) -> None:
    check_density("density", value)


@pytest.mark.parametrize("value", [0, -0.1, 1.01, float("nan"), float("inf"), "half", None, True])
def test_what_is_no_share_is_refused(value: Any) -> None:
    with pytest.raises(OptionError, match=r"density=.* has to be a number in \(0, 1\]"):
        check_density("density", value)


@pytest.mark.parametrize("value", [0, -1, 2.0, "4", True, None])
def test_what_is_no_count_is_refused(value: Any) -> None:
    with pytest.raises(OptionError, match=r"lanes=.* has to be a whole number, 1 or more"):
        check_count("lanes", value)


def test_counts_have_a_limit() -> None:
    check_count("entries", 9, most=9)
    with pytest.raises(OptionError, match="entries=10 has to be a whole number, 1 to 9"):
        check_count("entries", 10, most=9)


def test_choices_are_listed() -> None:
    check_choice("scope", "layer", ("layer", "global"))
    with pytest.raises(OptionError, match="scope='model' is not one of layer, global"):
        check_choice("scope", "model", ("layer", "global"))
