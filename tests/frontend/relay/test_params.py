"""Parameter files, against TVM's own writer and bytes by hand."""

import struct

import ml_dtypes
import numpy as np
import pytest
import tvm

from tvm_ext.errors import ArtifactError
from tvm_ext.frontend.relay.errors import RelayError
from tvm_ext.frontend.relay.ndarray import read_ndarray
from tvm_ext.frontend.relay.params import read_relay_params, write_relay_params

from .graphs import array_bytes

MAGIC = 0xF7E58D4F05049CB7


def file_bytes(arrays, names=None):
    """A parameter file by hand; `arrays` may have bytes in an array's place."""
    names = list(arrays) if names is None else names
    encoded = [n if isinstance(n, bytes) else n.encode() for n in names]
    values = [v if isinstance(v, bytes) else array_bytes(v) for v in arrays.values()]
    return (
        struct.pack("<QQQ", MAGIC, 0, len(encoded))
        + b"".join(struct.pack("<Q", len(n)) + n for n in encoded)
        + struct.pack("<Q", len(values))
        + b"".join(values)
    )


def some_arrays():
    rng = np.random.default_rng(3)
    return {
        "weight": rng.standard_normal((3, 5)).astype("float32"),
        "p0": rng.integers(-128, 128, (7,)).astype("int8"),
        "": np.array(2**40, "int64"),
        "état/ß:0": np.zeros((2, 0, 3), "float16"),
        "u": np.array([[0, 255]], "uint8"),
    }


def assert_same(params, arrays):
    assert list(params) == list(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(params[name], array, strict=True)


def test_bytes_by_hand_are_read():
    assert_same(read_relay_params(file_bytes(some_arrays())), some_arrays())


def test_files_of_tvm_are_read_and_read_by_tvm(tmp_path):
    arrays = some_arrays()
    written = tvm.runtime.save_param_dict({k: tvm.runtime.tensor(v) for k, v in arrays.items()})
    path = tmp_path / "model.params"
    path.write_bytes(written)
    read = read_relay_params(path)
    assert_same({name: read[name] for name in arrays}, arrays)

    write_relay_params(path, read)
    assert path.read_bytes() == written
    # TVM can't read its own file with an empty array in it.
    del arrays["état/ß:0"]
    write_relay_params(path, arrays)
    back = tvm.runtime.load_param_dict(path.read_bytes())
    assert_same({name: back[name].numpy() for name in arrays}, arrays)


@pytest.mark.parametrize(
    "dtype",
    ["bool", "float16", "float32", "float64"]
    + [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)],
)
def test_each_dtype_comes_back(tmp_path, dtype):
    arrays = {"x": np.array([[0, 1, 1], [1, 0, 1]], dtype)}
    write_relay_params(tmp_path / "x.params", arrays)
    assert_same(read_relay_params(str(tmp_path / "x.params")), arrays)


def test_bfloat16_and_both_codes_of_bool(tmp_path):
    arrays = {"x": np.array([1.5, -2], ml_dtypes.bfloat16)}
    write_relay_params(tmp_path / "x.params", arrays)
    assert_same(read_relay_params(tmp_path / "x.params"), arrays)
    mask = np.array([True, False])
    for code, bits in ((1, 1), (6, 8)):
        data = memoryview(array_bytes(mask, code, bits))
        np.testing.assert_array_equal(read_ndarray(data, 0, "x")[0], mask, strict=True)


def test_strided_and_big_endian_arrays_are_written_by_value(tmp_path):
    base = np.arange(12, dtype="float32").reshape(3, 4)
    write_relay_params(tmp_path / "x", {"t": base.T, "b": base.astype(">f4")})
    assert_same(read_relay_params(tmp_path / "x"), {"t": base.T.copy(), "b": base})


def test_npz_and_mappings(tmp_path):
    arrays = {"a": np.arange(3), "b.c": np.ones((2, 2), "float32")}
    np.savez(tmp_path / "p.npz", **arrays)
    assert_same(read_relay_params(tmp_path / "p.npz"), arrays)
    assert_same(read_relay_params(arrays), arrays)
    assert_same(read_relay_params({"a": [1, 2]}), {"a": np.array([1, 2])})
    tensors = {"a": tvm.runtime.tensor(np.arange(3, dtype="int32"))}
    assert_same(read_relay_params(tensors), {"a": np.arange(3, dtype="int32")})


def with_header(dtype=(2, 32, 1), rank=1, shape=(2,), nbytes=8, magic=0xDD5E40F096B4A13F):
    return {
        "x": struct.pack("<QQiiiBBH", magic, 0, 1, 0, rank, *dtype)
        + struct.pack(f"<{len(shape)}qq", *shape, nbytes)
        + bytes(8)
    }


ONE = {"x": np.zeros(2, "float32")}
BROKEN = {
    "empty": (b"", "ends in the middle of the magic number, at byte 0"),
    "other": (b"not a parameter file", "is no parameter file: it begins with 0x"),
    "names": (file_bytes(ONE)[:20], "the number of names"),
    "length": (file_bytes(ONE)[:28], "the length of name 0"),
    "name": (struct.pack("<QQQQ", MAGIC, 0, 1, 99) + b"x", "name 0 has 99 bytes, the file 1 more"),
    "huge": (struct.pack("<QQQ", MAGIC, 0, 2**63), "the length of name 0"),
    "text": (file_bytes(ONE, [b"\xff"]), "name 0 isn't UTF-8"),
    "count": (file_bytes(ONE, ["x", "y"]), "has 2 names and 1 arrays"),
    "twice": (file_bytes({"x": np.zeros(1), "y": np.zeros(1)}, ["x", "x"]), r"twice: \['x'\]"),
    "header": (file_bytes(ONE)[:-50], "parameter 'x': byte 41: the header of an array ends at"),
    "data": (file_bytes(ONE)[:-1], "the data of an array ends at byte 97, the data at byte 96"),
    "behind": (file_bytes(ONE) + b"x", "1 bytes are left behind the last array"),
    "magic": (file_bytes(with_header(magic=7)), "an array begins with 0xdd5e40f096b4a13f, here"),
    "rank": (file_bytes(with_header(rank=-1)), "rank -1: allowed are 0 to 32"),
    "dtype": (file_bytes(with_header((0, 4, 1))), "code 0, 4 bits, 1 lanes.* isn't one of"),
    "lanes": (file_bytes(with_header((2, 32, 4))), "4 lanes"),
    "shape": (file_bytes(with_header(shape=(-2,))), r"shape \(-2,\) of float32 doesn't take 8"),
    "size": (file_bytes(with_header(nbytes=4)), "doesn't take 4 bytes"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_damaged_files_are_errors_with_their_place(tmp_path, case):
    data, match = BROKEN[case]
    path = tmp_path / "old.params"
    path.write_bytes(data)
    with pytest.raises(RelayError, match=match) as error:
        read_relay_params(path)
    assert str(error.value).startswith(str(path))


def test_a_file_cut_anywhere_is_an_error():
    data = file_bytes(some_arrays())
    for end in range(len(data)):
        with pytest.raises(RelayError):
            read_relay_params(data[:end])


def test_other_sources_are_errors(tmp_path):
    with pytest.raises(RelayError, match="can't be read: No such file"):
        read_relay_params(tmp_path / "none.params")
    with pytest.raises(RelayError, match="parameters are a list: allowed are a path"):
        read_relay_params([1])
    (tmp_path / "p.npz").write_bytes(b"PK not a zip")
    with pytest.raises(RelayError, match=r"the \.npz file can't be read"):
        read_relay_params(tmp_path / "p.npz")
    np.savez(tmp_path / "p.npz", a=np.array([{}], object))
    with pytest.raises(RelayError, match=r"the \.npz file can't be read"):
        read_relay_params(tmp_path / "p.npz")


def test_what_cant_be_written_is_an_error(tmp_path):
    with pytest.raises(RelayError, match="an array of complex64 can't be written: allowed are"):
        write_relay_params(tmp_path / "x", {"a": np.zeros(1, "complex64")})
    with pytest.raises(ArtifactError, match="can't write"):
        write_relay_params(tmp_path / "none" / "x", {"a": np.zeros(1)})
