"""Exported drivers on the host: compiled, called through ctypes, the simulator behind the HAL."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.errors import ProgramError
from tvm_ext.codegen.isa import ISA_VERSION
from tvm_ext.codegen.program import Buffer, Program
from tvm_ext.codegen.program_file import decode_instructions
from tvm_ext.codegen.simulator import simulate
from tvm_ext.errors import TvmExtError

STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-Wconversion", "-Wshadow", "-Wcast-qual"]
COMPILERS = {"gcc": ["gcc", "-std=c99", *STRICT], "g++": ["g++", "-std=c++11", *STRICT]}

OK, NULL_POINTER, OTHER_ISA_VERSION, OTHER_VARIANT, DAMAGED = range(5)
NOT_LOADED, IDENTIFY_FAILED, WRITE_FAILED, READ_FAILED, EXECUTE_FAILED = range(5, 10)


def compile_c(compiler: str, *arguments: str | Path) -> str:
    """Run a compiler without optimisation; its messages, and an error if it isn't content."""
    command = COMPILERS[compiler]
    assert shutil.which(command[0]), f"these tests need {command[0]}: a driver is C source"
    done = subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stderr


class Device:
    """An accelerator and its system memory, full of rubbish at first.

    Attributes
    ----------
    memory : ndarray of uint8
    writes : list of (address, bytes)
        What has been written, in order; only that can be read by programs.
    words : int
        Of the last command stream.
    """

    def __init__(
        self, accelerator: Accelerator, memory_bytes: int, isa_version: int = ISA_VERSION
    ) -> None:
        self.accelerator, self.isa_version = accelerator, isa_version
        self.memory = np.full(memory_bytes, 0xA5, np.uint8)
        self.writes: list[tuple[int, int]] = []
        self.words = 0

    def write(self, address: int, data: bytes) -> None:
        """Copy bytes in."""
        self._check(address, len(data))
        self.memory[address : address + len(data)] = np.frombuffer(data, np.uint8)
        self.writes.append((address, len(data)))

    def read(self, address: int, count: int) -> bytes:
        """Copy bytes out."""
        self._check(address, count)
        return self.memory[address : address + count].tobytes()

    def execute(self, words: bytes) -> None:
        """Run a command stream on the simulator."""
        self.words = len(words) // 4
        filled = [
            Buffer(str(i), "input", address, (count,), "int8")
            for i, (address, count) in enumerate(sorted(set(self.writes)))
        ]
        program = Program(
            self.accelerator.variant,
            decode_instructions(words),
            len(self.memory),
            buffers=tuple(filled),
        )
        simulate(program, self.accelerator, self.memory)

    def _check(self, address: int, count: int) -> None:
        if address + count > len(self.memory):
            raise ProgramError(f"{address} to {address + count} of {len(self.memory)} bytes")


Pointer = int | None


class _Identity(ctypes.Structure):
    _fields_ = (("isa_version", ctypes.c_uint32), ("variant", ctypes.c_char_p))


_Identify = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(_Identity))
_Transfer = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_uint32
)
_Execute = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32)


class _Hal(ctypes.Structure):
    _fields_ = (
        ("context", ctypes.c_void_p),
        ("loaded", ctypes.c_uint32),
        ("identify", _Identify),
        ("write_memory", _Transfer),
        ("read_memory", _Transfer),
        ("execute", _Execute),
    )


class Driver:
    """A compiled driver whose HAL is a `Device`.

    Attributes
    ----------
    hal : ctypes.Structure
        Its functions may be taken away.
    failing : str
        The function of the HAL that doesn't work.
    error : TvmExtError or None
        What the device said last.
    """

    def __init__(self, source: Path, device: Device) -> None:
        library = source.with_suffix(".so")
        compile_c("gcc", "-shared", "-fPIC", source, "-o", library)
        self.name, self.device = source.stem, device
        self.library = ctypes.CDLL(str(library))
        self.failing = ""
        self.error: TvmExtError | None = None
        self._variant = device.accelerator.variant.encode()
        self.hal = _Hal(
            None,
            0,
            _Identify(self._identify),
            _Transfer(self._write),
            _Transfer(self._read),
            _Execute(self._execute),
        )

    def load(self) -> int:
        """NAME_load."""
        return int(self._function("load")(ctypes.byref(self.hal)))

    def run(self, *arrays: np.ndarray | None) -> int:
        """NAME_run; outputs are filled."""
        pointers = [None if x is None else x.ctypes.data_as(ctypes.c_void_p) for x in arrays]
        return int(self._function("run")(ctypes.byref(self.hal), *pointers))

    def text(self, status: int) -> str:
        """NAME_status_text."""
        function = self._function("status_text")
        function.restype = ctypes.c_char_p
        return str(function(status).decode())

    def buffers(self, rank: int, count: int) -> list[tuple[str, int, int, int, int, list[int]]]:
        """NAME_buffers: name, role, dtype, address, bytes, shape."""
        kind: Any = type(
            "_Buffer",
            (ctypes.Structure,),
            {
                "_fields_": [
                    ("name", ctypes.c_char_p),
                    *((field, ctypes.c_int) for field in ("role", "dtype")),
                    *((field, ctypes.c_uint32) for field in ("address", "bytes", "rank")),
                    ("shape", ctypes.c_uint32 * rank),
                ]
            },
        )
        table: Any = (kind * count).in_dll(self.library, f"{self.name}_buffers")
        return [
            (x.name.decode(), x.role, x.dtype, x.address, x.bytes, list(x.shape[: x.rank]))
            for x in table
        ]

    def _function(self, name: str) -> Any:
        return getattr(self.library, f"{self.name}_{name}")

    def _guarded(self, name: str, action: Callable[[], None]) -> int:
        try:
            action()
        except TvmExtError as error:
            self.error = error
            return 1
        return int(self.failing == name)

    def _identify(self, _context: Pointer, identity: ctypes._Pointer[_Identity]) -> int:
        identity.contents.isa_version = self.device.isa_version
        identity.contents.variant = self._variant
        return int(self.failing == "identify")

    def _write(self, _context: Pointer, address: int, data: int, count: int) -> int:
        copy = ctypes.string_at(data, count)
        return self._guarded("write_memory", lambda: self.device.write(address, copy))

    def _read(self, _context: Pointer, address: int, data: int, count: int) -> int:
        def action() -> None:
            ctypes.memmove(data, self.device.read(address, count), count)

        return self._guarded("read_memory", action)

    def _execute(self, _context: Pointer, words: int, count: int) -> int:
        copy = ctypes.string_at(words, 4 * count)
        return self._guarded("execute", lambda: self.device.execute(copy))
