"""Scaled dot-product attention: masks, scale, shared heads."""

import pytest

from tvm_ext.errors import ModelError
from tvm_ext.frontend import load_model

from ..torch_cases import Cases, export, normal, torch

attention = torch.nn.functional.scaled_dot_product_attention
Q, K, V = (normal(2, 4, 6, 8, seed=i) for i in range(3))
SHARED = normal(2, 2, 6, 8, seed=3)
MASK = normal(6, 6, seed=4) > 0
# Nothing to look at for query 2.
BLIND = MASK.clone()
BLIND[2] = False


class Masked(torch.nn.Module):
    """A mask that the program knows."""

    def __init__(self, mask):
        super().__init__()
        self.register_buffer("mask", mask.clone())

    def forward(self, q):
        return attention(q, q, q, attn_mask=self.mask)


CASES = Cases(
    {
        "plain": (attention, Q, K, V),
        "more_keys": (lambda q, k: attention(q, k, k), Q, normal(2, 4, 9, 8)),
        "scale": (lambda q, k, v: attention(q, k, v, scale=0.3), Q, K, V),
        "causal": (lambda q, k, v: attention(q, k, v, is_causal=True), Q, K, V),
        "boolean": (lambda q, m: attention(q, q, q, attn_mask=m), Q, BLIND),
        "float": (lambda q, m: attention(q, q, q, attn_mask=m), Q, normal(2, 4, 6, 6)),
        "known": (Masked(MASK), Q),
        "known_blind": (Masked(BLIND), Q),
        "shared_heads": (lambda q, k: attention(q, k, k, enable_gqa=True), Q, SHARED),
        "weights": (torch.nn.MultiheadAttention(8, 2), Q[0], K[0], V[0]),
    }
)


@pytest.mark.parametrize("name", CASES.cases)
def test_matches_torch(name):
    CASES.check(name)


def test_dropout_is_refused():
    class Dropping(torch.nn.Module):
        def forward(self, q):
            return attention(q, q, q, dropout_p=0.5)

    with pytest.raises(ModelError, match=r"scaled_dot_product_attention.*dropout_p is 0\.5"):
        load_model(export(Dropping(), Q))
