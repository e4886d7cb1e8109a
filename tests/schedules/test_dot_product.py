"""The instruction of each CPU, and how channels are put into words."""

from __future__ import annotations

import numpy as np
import pytest

from tests.schedules.kernels import AVX512, NEON
from tvm_ext.schedules.dot_product import dot_product, tile_target
from tvm_ext.target import resolve

A76 = "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a76"


@pytest.mark.parametrize(
    ("target", "name", "group", "unsigned"),
    [
        ("llvm -mcpu=emeraldrapids", "vpdpbusd", 4, True),
        ("llvm -mcpu=znver4", "vpdpbusd", 4, True),
        ("llvm -mcpu=alderlake", "vpdpbusd", 4, True),
        ("llvm -mcpu=skylake-avx512", "vpmaddwd", 2, None),
        ("llvm -mcpu=skylake-avx512 -mattr=+avx512vnni", "vpdpbusd", 4, True),
        ("llvm -mcpu=knl", "multiply", 1, None),
        ("llvm -mcpu=core-avx2", "vpmaddwd", 2, None),
        ("llvm -mcpu=x86-64-v2", "pmaddwd", 2, None),
        (A76, "sdot", 4, False),
        (NEON, "multiply", 1, None),
    ],
)
def test_instructions(target: str, name: str, group: int, unsigned: bool | None) -> None:
    found = dot_product(resolve(target))
    assert (found.name, found.group, found.unsigned) == (name, group, unsigned)


def test_words_of_weights() -> None:
    values = np.array([[1, -2, 3, -4, 5]], "int8")
    vnni, widened = dot_product(resolve("llvm -mcpu=znver4")), dot_product(AVX512)
    assert vnni.words(5) == 2
    np.testing.assert_array_equal(vnni.pack(values).view("int8"), [[1, -2, 3, -4, 5, 0, 0, 0]])
    np.testing.assert_array_equal(widened.pack(values).view("int16"), [[1, -2, 3, -4, 5, 0]])
    np.testing.assert_array_equal(dot_product(NEON).pack(values), values)


def test_words_of_one_value() -> None:
    vnni, widened = dot_product(resolve("llvm -mcpu=znver4")), dot_product(AVX512)
    assert vnni.word(1) == 0x01010101
    assert vnni.word(255) == -1
    assert widened.word(-2) == -0x10002
    assert dot_product(NEON).word(-7) == -7


def test_shifts_of_activations() -> None:
    vnni, sdot, widened = (dot_product(resolve(t)) for t in ("llvm -mcpu=znver4", A76, AVX512))
    assert [d.shift("uint8") for d in (vnni, sdot, widened)] == [0, -128, 0]
    assert [d.shift("int8") for d in (vnni, sdot, widened)] == [128, 0, 0]


def test_widened_products_leave_registers_free() -> None:
    assert tile_target(AVX512).registers == 30
    assert tile_target(resolve("llvm -mcpu=znver4")).registers == 32
