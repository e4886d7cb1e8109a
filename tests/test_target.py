"""Targets: what users write, what comes of it, and what is refused."""

from __future__ import annotations

import pytest

from tvm_ext import target as target_module
from tvm_ext.errors import OptionError, TargetError
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


def test_llvm_gets_our_options_unless_told_otherwise() -> None:
    ours = {str(option) for option in resolve("znver4").tvm.attrs["cl-opt"]}
    assert "-misched-cyclicpath:bool=false" in ours
    theirs = ["-misched-cyclicpath:bool=true", "-vectorize-loops:bool=false"]
    chosen = resolve({**_X86, "mcpu": "znver4", "cl-opt": theirs}).tvm
    assert [str(option) for option in chosen.attrs["cl-opt"]] == theirs
    assert "cl-opt" not in resolve("znver4").llvm


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


def test_amx_is_a_matter_of_the_cpu() -> None:
    for mcpu, amx in (("sapphirerapids", True), ("znver4", False), ("core-avx2", False)):
        assert resolve({**_X86, "mcpu": mcpu}).amx is amx
    assert not resolve({**_X86, "mcpu": "sapphirerapids", "mattr": ["-amx-bf16"]}).amx
    assert not resolve("llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1").amx
    windows = {"kind": "llvm", "mtriple": "x86_64-pc-windows-msvc", "mcpu": "sapphirerapids"}
    assert not resolve(windows).amx


def test_native_does_not_use_what_the_system_hides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target_module, "host_has_amx", lambda: False)
    host = resolve("native", "high")
    assert host.is_host
    assert not host.amx
    # What is stored of it says so, too.
    assert resolve(host.llvm, "high").is_host
    assert not resolve(host.llvm, "high").amx


def test_the_host_runs_amx_code_only_if_it_has_amx(monkeypatch: pytest.MonkeyPatch) -> None:
    sapphire = "llvm -mtriple=x86_64-linux-gnu -mcpu=sapphirerapids"
    runs_avx512 = resolve("llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512").is_host
    for has in (True, False):
        monkeypatch.setattr(target_module, "host_has_amx", lambda has=has: has)
        assert resolve(sapphire).is_host is runs_avx512
        high = resolve(sapphire, "high")
        assert high.is_host is (runs_avx512 and has)
        assert high.amx
        # A target that is resolved gets another precision, and what follows from it.
        assert resolve(resolve(sapphire), "high") == high
        assert resolve(high, "highest") == resolve(sapphire)
        assert resolve(high) is high


def test_precision_is_in_the_name() -> None:
    highest = resolve({**_X86, "mcpu": "sapphirerapids"})
    assert highest.precision == "highest"
    assert resolve(highest, "high").name == highest.name[:-1] + ", precision high)"
    with pytest.raises(OptionError, match=r"precision='medium'; allowed: highest, high"):
        resolve("native", "medium")


def test_rates_do_not_depend_on_the_precision() -> None:
    host = resolve()
    assert resolve(host, "high").fma_peak == host.fma_peak
    assert resolve(host, "high").memory_bandwidth == host.memory_bandwidth
