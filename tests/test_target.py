"""Targets: what users write, what comes of it, and what is refused."""

from __future__ import annotations

import pytest

from tvm_ext.errors import TargetError
from tvm_ext.target import resolve

_X86 = {"kind": "llvm", "mtriple": "x86_64-linux-gnu"}


@pytest.mark.parametrize(
    ("mcpu", "isa", "lanes", "registers"),
    [
        ("skylake-avx512", "avx512", 16, 32),
        ("sapphirerapids", "avx512", 16, 32),
        ("core-avx2", "avx2", 8, 16),
        ("znver3", "avx2", 8, 16),
        ("nehalem", "sse", 4, 16),
    ],
)
def test_vector_unit(mcpu: str, isa: str, lanes: int, registers: int) -> None:
    target = resolve({**_X86, "mcpu": mcpu})
    assert (target.isa, target.lanes, target.registers) == (isa, lanes, registers)


def test_aarch64() -> None:
    target = resolve("llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1")
    assert (target.isa, target.lanes) == ("neon", 4)
    assert target.name.startswith("neoverse-n1 (neon")


def test_attributes_count() -> None:
    without = resolve({**_X86, "mcpu": "skylake-avx512", "mattr": ["-avx512f"]})
    assert without.isa == "avx2"


def test_native_is_the_host() -> None:
    host = resolve()
    assert host.is_host
    assert host.cores >= 1
    assert host.l1d < host.l2
    assert resolve(host) is host


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("cuda", r"target kind 'cuda' is not supported; allowed: llvm"),
        ("llvm -mcpu=core-avx9", r"unknown mcpu 'core-avx9'.*core-avx2"),
        ("llvm -colour=red", r"can't read '-colour=red'"),
        ("llvm -mtriple=riscv64-linux-gnu", r"architecture 'riscv64' is not supported"),
    ],
)
def test_refusals(target: str, message: str) -> None:
    with pytest.raises(TargetError, match=message):
        resolve(target)


def test_cores_share_the_memory() -> None:
    target = resolve("llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1")
    one = target.bandwidth(1)
    assert one == target.memory_bandwidth
    assert target.bandwidth(2) == target.bandwidth(8) == 1.5 * one


def test_a_foreign_target_has_nominal_rates() -> None:
    target = resolve("llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1")
    if not target.is_host:
        assert target.fma_peak == 4 * 4 * 3e9
        assert target.memory_bandwidth == 10e9
