"""Weights that are no numbers are refused before anything is pruned."""

from __future__ import annotations

import numpy as np

from tvm_ext.errors import PruningError


def check_finite(layer: str, weights: np.ndarray) -> None:
    """Refuse weights that can't be ranked.

    Raises
    ------
    PruningError
        One is NaN or infinite: its layer, value and place.
    """
    finite = np.isfinite(weights)
    if not finite.all():
        wrong = np.argwhere(~finite)
        place = tuple(int(i) for i in wrong[0])
        raise PruningError(
            f"layer {layer}: the weight at {place} is {weights[place]}, one of {len(wrong)} that "
            "are not finite"
        )
