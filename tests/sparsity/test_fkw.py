"""Filter-kernel-weight storage: by hand, round trips, and its bytes beside those of CSR."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from tests.sparsity.matrices import assert_restored
from tests.sparsity.patterned import patterned
from tvm_ext.errors import OptionError
from tvm_ext.sparsity import Csr, Fkw


def test_by_hand():
    weights = np.zeros((3, 2, 2, 2), "float32")
    weights[0, 0, 0, 1], weights[0, 0, 1, 0] = 1, 2
    weights[0, 1, 0, 0] = 3
    weights[2, 1, 0, 0] = 4
    fkw = Fkw.from_dense(weights)
    assert fkw.patterns == ((0,), (1, 2))
    # The empty filter, the one of one kernel, the one of two.
    assert fkw.order.tolist() == [1, 2, 0]
    assert fkw.strides.tolist() == [[0, 0, 0], [0, 1, 1], [0, 1, 2]]
    assert fkw.indices.tolist() == [1, 1, 0]
    assert fkw.weights.tolist() == [4, 3, 1, 2]
    assert fkw.pattern_ids.tolist() == [0, 0, 1]
    assert fkw.structure_nbytes == 3 + 3 + 9 + 3
    assert fkw.nbytes == fkw.structure_nbytes + 16


@st.composite
def _weights(draw):
    """Few kernels of any bits, of patterns that a drawn set allows."""
    filters, channels = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    kernel = draw(st.sampled_from([(3, 3), (5, 5), (1, 3), (2,), (2, 2, 2)]))
    weights = patterned((filters, channels, *kernel), 3, draw(st.integers(1, 4)), 0.5)
    nonzero = np.flatnonzero(weights)
    bits = st.integers(1, 2**31 - 1) | st.integers(2**31 + 1, 2**32 - 1)
    drawn = draw(st.lists(bits, min_size=len(nonzero), max_size=len(nonzero)))
    weights.view("uint32").reshape(-1)[nonzero] = drawn
    return weights


@given(_weights())
def test_round_trip(weights):
    fkw = Fkw.from_dense(weights)
    assert_restored(fkw.to_dense(), weights)
    assert len(fkw.weights) == np.count_nonzero(weights)


@pytest.mark.parametrize("channels", [255, 256, 257, 600])
def test_channels_beyond_a_byte(channels):
    weights = patterned((8, channels, 3, 3), connectivity=0.3)
    fkw = Fkw.from_dense(weights)
    assert_restored(fkw.to_dense(), weights)
    assert fkw.indices.dtype == "uint8"


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8"])
def test_other_dtypes(dtype):
    weights = np.rint(4 * patterned((8, 4, 3, 3))).astype(dtype)
    fkw = Fkw.from_dense(weights)
    assert fkw.weights.dtype == dtype
    np.testing.assert_array_equal(fkw.to_dense(), weights)


def test_filters_stay_in_their_groups():
    weights = patterned((12, 5, 3, 3), connectivity=0.4)
    fkw = Fkw.from_dense(weights, groups=3)
    assert [sorted(part.tolist()) for part in fkw.order.reshape(3, 4)] == [
        [0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]
    ]  # fmt: skip
    assert_restored(fkw.to_dense(), weights)


def test_nothing_but_zeros():
    weights = np.zeros((4, 3, 3, 3), "float32")
    fkw = Fkw.from_dense(weights)
    assert (fkw.patterns, len(fkw.weights)) == ((), 0)
    assert_restored(fkw.to_dense(), weights)


@pytest.mark.parametrize("connectivity", [1.0, 1 / 3.6])
@pytest.mark.parametrize("shape", [(64, 64), (128, 64), (256, 256), (512, 512)])
def test_structure_is_at_most_15_percent_of_csr(shape, connectivity):
    """VGG's shapes, 8 patterns of 4 taps: PatDNN's setting, and CSR as it has it: of int32."""
    weights = patterned((*shape, 3, 3), patterns=8, connectivity=connectivity)
    csr = scipy.sparse.csr_array(weights.reshape(len(weights), -1))
    structure = Fkw.from_dense(weights).structure_nbytes
    assert structure <= 0.15 * 4 * (len(csr.indices) + len(csr.indptr))
    # Our own CSR has 16-bit columns: half of that.
    compact = Csr.from_dense(weights.reshape(len(weights), -1)).structure_nbytes
    assert structure <= (0.15 if connectivity == 1 else 0.2) * compact


def test_refuses_too_many_patterns_and_taps():
    rng = np.random.default_rng(0)
    weights = (rng.random((40, 40, 3, 3)) < 0.5).astype("float32")
    with pytest.raises(OptionError, match=r"kernels of \d+ patterns; FKW takes at most 64"):
        Fkw.from_dense(weights)
    with pytest.raises(OptionError, match="kernels of 81 taps; FKW takes at most 64"):
        Fkw.from_dense(np.ones((1, 1, 9, 9), "float32"))
