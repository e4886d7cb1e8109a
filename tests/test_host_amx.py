"""Whether the host gives AMX to processes, from what Linux says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tvm_ext import host_amx
from tvm_ext.host_amx import TILE_DATA, host_has_amx

FLAGS = {"avx512f", "amx_tile", "amx_bf16", "amx_int8"}


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """One that has it; what tests change is forgotten afterwards."""
    monkeypatch.setattr(host_amx.platform, "system", lambda: "Linux")
    monkeypatch.setattr(host_amx.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(host_amx, "_cpu_flags", lambda: FLAGS)
    monkeypatch.setattr(host_amx, "_register_states", lambda: 1 << TILE_DATA | 0xE7)
    host_has_amx.cache_clear()
    yield monkeypatch
    host_has_amx.cache_clear()


def test_a_machine_that_has_it(machine: pytest.MonkeyPatch) -> None:
    assert host_has_amx()


@pytest.mark.parametrize("lacking", ["amx_tile", "amx_bf16"])
def test_hidden_by_a_virtual_machine(machine: pytest.MonkeyPatch, lacking: str) -> None:
    machine.setattr(host_amx, "_cpu_flags", lambda: FLAGS - {lacking})
    assert not host_has_amx()


def test_a_kernel_that_does_not_keep_its_registers(machine: pytest.MonkeyPatch) -> None:
    machine.setattr(host_amx, "_register_states", lambda: 0xE7)
    assert not host_has_amx()


@pytest.mark.parametrize(("name", "value"), [("system", "Darwin"), ("machine", "aarch64")])
def test_other_machines(machine: pytest.MonkeyPatch, name: str, value: str) -> None:
    machine.setattr(host_amx.platform, name, lambda: value)
    assert not host_has_amx()


def test_this_machine_is_asked_without_an_error() -> None:
    host_has_amx.cache_clear()
    assert host_has_amx() in (True, False)
    assert host_has_amx() <= ("amx_tile" in host_amx._cpu_flags())
