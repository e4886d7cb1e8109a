"""Exported drivers, compiled by gcc, on the simulator: the same bits as `simulate`."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from tests.codegen import driver_device as codes
from tests.codegen.driver_device import COMPILERS, Device, Driver, compile_c
from tests.codegen.instructions import programs
from tests.codegen.lowering_networks import Builder
from tests.codegen.streams import HARDWARE, read, relu, shape, write
from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.errors import ProgramError
from tvm_ext.codegen.export import export_program
from tvm_ext.codegen.isa import instruction
from tvm_ext.codegen.lowering import compile_network, pack_inputs, unpack_outputs
from tvm_ext.codegen.network_elementwise import Add
from tvm_ext.codegen.network_reference import run_reference
from tvm_ext.codegen.program import Buffer, Program
from tvm_ext.codegen.simulator import simulate


def sum_and_relu(count: int, rng: np.random.Generator) -> tuple[Program, np.ndarray]:
    """An int32 input plus int32 constants, and the ReLU of an int8 input."""
    constants = rng.integers(-(2**31), 2**31, count, np.int32)
    size = 4 * count
    program = Program(
        HARDWARE.variant,
        (
            *shape(1, 1, count),
            read(0, size, 0),
            read(1024, size, size),
            read(2048, count, 2 * size, push_next=True),
            instruction("OP_E32_ADD", input=1024, other=0, output=1024, pop_prev=True),
            relu(2048, 2048, push_next=True),
            write(1024, size, 2 * size + count, pop_prev=True),
            write(2048, count, 3 * size + count),
            instruction("OP_END"),
        ),
        3 * size + 2 * count,
        constants.astype("<i4").tobytes(),
        (
            Buffer("a", "input", size, (count,), "int32"),
            Buffer("x", "input", 2 * size, (count,), "int8"),
            Buffer("sum", "output", 2 * size + count, (count,), "int32"),
            Buffer("y", "output", 3 * size + count, (count,), "int8"),
        ),
    )
    return program, constants


def exported(
    program: Program, folder: Path, accelerator: Accelerator = HARDWARE, **options
) -> Driver:
    """The compiled driver of a program on a device of this kind."""
    files = export_program(program, folder)
    return Driver(files.source, Device(accelerator, program.memory_bytes, **options))


@pytest.mark.parametrize("count", [1, 15, 16, 17, 33])
def test_int32_and_int8(count: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(count)
    program, constants = sum_and_relu(count, rng)
    driver = exported(program, tmp_path)
    inputs = {
        "a": rng.integers(-(2**31), 2**31, count, np.int32),
        "x": rng.integers(-128, 128, count, np.int8),
    }
    total, y = np.zeros(count, np.int32), np.zeros(count, np.int8)
    assert driver.load() == codes.OK
    assert driver.run(inputs["a"], inputs["x"], total, y) == codes.OK
    wrapped = (inputs["a"].astype(np.int64) + constants).astype(np.uint32).view(np.int32)
    np.testing.assert_array_equal(total, wrapped)
    np.testing.assert_array_equal(y, np.maximum(inputs["x"], 0))
    memory = program.memory_image(inputs)
    simulate(program, HARDWARE, memory)
    np.testing.assert_array_equal(total, program.outputs(memory)["sum"])
    np.testing.assert_array_equal(y, program.outputs(memory)["y"])
    assert driver.device.words == 4 * len(program.instructions)


@pytest.mark.parametrize("parallel", ["output", "input"])
def test_compiled_network(parallel: str, tmp_path: Path) -> None:
    hardware = Accelerator("edge", pes=8, sram_bytes=2500, parallel=parallel)
    builder = Builder(np.random.default_rng(3))
    left, right = builder.input(1, 5, 9, 7), builder.input(1, 5, 9, 7)
    x = builder.conv(builder.elementwise(Add, left, right), 17, (3, 3), (2, 1), (1, 1, 1, 1))
    image = builder.conv(x, 17, (3, 3), pads=(1, 1, 1, 1), depthwise=True)
    flat = builder.reshape(builder.pool(image, "global_average"), 1, 17)
    network = builder.network(image, builder.matmul(flat, 9))
    program = compile_network(network, hardware)
    driver = exported(program, tmp_path, hardware)
    buffers = {buffer.name: buffer for buffer in program.buffers}
    assert driver.load() == codes.OK
    for seed in range(2):
        rng = np.random.default_rng(seed)
        inputs = {
            name: rng.integers(-128, 128, network.tensors[name].shape).astype("int8")
            for name in network.inputs
        }
        packed = pack_inputs(network, inputs)
        outputs = {name: np.zeros(buffers[name].shape, "int8") for name in network.outputs}
        assert driver.run(*packed.values(), *outputs.values()) == codes.OK, driver.error
        memory = program.memory_image(packed)
        simulate(program, hardware, memory)
        for name, wanted in program.outputs(memory).items():
            np.testing.assert_array_equal(outputs[name], wanted, err_msg=name)
        unpacked = unpack_outputs(network, outputs)
        for name, wanted in run_reference(network, inputs).items():
            np.testing.assert_array_equal(unpacked[name], wanted, err_msg=name)
    assert [address for address, _ in driver.device.writes].count(0) == 1


ANOTHER = replace(HARDWARE, pes=128)


@pytest.mark.parametrize(
    ("accelerator", "isa_version", "status", "text"),
    [
        (ANOTHER, 1, codes.OTHER_VARIANT, f"variant; the program is for {HARDWARE.variant}"),
        (HARDWARE, 2, codes.OTHER_ISA_VERSION, "the program is for ISA version 1"),
    ],
)  # fmt: skip
def test_another_device_is_refused_by_name(
    accelerator: Accelerator, isa_version: int, status: int, text: str, tmp_path: Path
) -> None:
    program, arrays = small()
    driver = exported(program, tmp_path, accelerator, isa_version=isa_version)
    assert driver.load() == driver.run(*arrays) == status
    assert text in driver.text(status)
    assert driver.device.writes == [] and driver.device.words == 0


def small() -> tuple[Program, list[np.ndarray]]:
    """A program, and arrays for its inputs and outputs."""
    program, _ = sum_and_relu(5, np.random.default_rng(0))
    return program, [np.zeros(5, buffer.dtype) for buffer in program.buffers]


@pytest.mark.parametrize("part", ["commands", "constants"])
def test_truncated_arrays_are_refused(part: str, tmp_path: Path) -> None:
    program, arrays = small()
    source = export_program(program, tmp_path).source
    lines = source.read_text().splitlines(keepends=True)
    begin = next(i for i, line in enumerate(lines) if f"model_{part}[" in line)
    end = lines.index("};\n", begin)
    # The compiler fills the rest with zeros, which for commands looks like OP_END.
    source.write_text("".join(lines[: end - 2 + (part == "constants")] + lines[end:]))
    driver = Driver(source, Device(HARDWARE, program.memory_bytes))
    assert driver.load() == codes.DAMAGED
    assert "truncated or corrupted" in driver.text(codes.DAMAGED)
    assert driver.run(*arrays) == codes.NOT_LOADED
    assert driver.device.writes == [] and driver.device.words == 0


def test_a_stream_that_is_cut_on_its_way_is_refused(tmp_path: Path) -> None:
    program, arrays = small()
    driver = exported(program, tmp_path)
    whole = driver.device.execute
    driver.device.execute = lambda words: whole(words[:-16])
    assert driver.load() == codes.OK
    assert driver.run(*arrays) == codes.EXECUTE_FAILED
    assert "OP_END is at []" in str(driver.error)


@pytest.mark.parametrize(
    ("function", "status"),
    [
        ("identify", codes.IDENTIFY_FAILED),
        ("write_memory", codes.WRITE_FAILED),
        ("read_memory", codes.READ_FAILED),
        ("execute", codes.EXECUTE_FAILED),
    ],
)
def test_what_the_hal_cannot_do(function: str, status: int, tmp_path: Path) -> None:
    program, arrays = small()
    driver = exported(program, tmp_path)
    driver.failing = function
    assert driver.load() == (status if function in ("identify", "write_memory") else codes.OK)
    driver.failing = ""
    assert driver.load() == codes.OK
    driver.failing = function
    assert driver.run(*arrays) == status
    driver.failing = ""
    assert driver.run(*arrays) == codes.OK
    kind = type(getattr(driver.hal, function))
    setattr(driver.hal, function, kind())
    assert driver.load() == driver.run(*arrays) == codes.NULL_POINTER


def test_order_and_arguments(tmp_path: Path) -> None:
    program, arrays = small()
    driver = exported(program, tmp_path)
    assert driver.run(*arrays) == codes.NOT_LOADED
    driver.failing = "write_memory"
    assert driver.load() == codes.WRITE_FAILED
    driver.failing = ""
    assert driver.run(*arrays) == codes.NOT_LOADED
    assert driver.load() == codes.OK
    for missing in range(len(arrays)):
        given = [None if i == missing else x for i, x in enumerate(arrays)]
        assert driver.run(*given) == codes.NULL_POINTER
    assert driver.run(*arrays) == codes.OK
    texts = {driver.text(status) for status in range(11)}
    assert len(texts) == 11 and "unknown status" in texts


@settings(max_examples=8, deadline=None)
@given(programs())
def test_any_program_compiles_and_its_buffers_are_listed(tmp_path_factory, made: Program) -> None:
    last = Buffer("last", "output", made.memory_bytes, (2, 1, 3), "int32")
    made = replace(made, memory_bytes=last.end, buffers=(*made.buffers, last))
    driver = exported(made, tmp_path_factory.mktemp("driver"))
    roles, dtypes = ["input", "output", "spill"], ["int8", "int32"]
    rank = max(len(buffer.shape) for buffer in made.buffers)
    assert driver.buffers(rank, len(made.buffers)) == [
        (x.name, roles.index(x.role), dtypes.index(x.dtype), x.address, x.nbytes, list(x.shape))
        for x in made.buffers
    ]


@pytest.mark.parametrize("compiler", COMPILERS)
def test_strict_compilers(compiler: str, tmp_path: Path) -> None:
    source, header = export_program(small()[0], tmp_path, "net")
    alone = tmp_path / "alone.c"
    alone.write_text(f'#include "{header.name}"\n#include "{header.name}"\nint main(void);\n')
    for path in (source, alone):
        compile_c(compiler, "-O2", "-ffreestanding", "-c", path, "-o", path.with_suffix(".o"))


def test_it_needs_nothing_but_strcmp(tmp_path: Path) -> None:
    source = export_program(small()[0], tmp_path).source
    compile_c("gcc", "-O2", "-ffreestanding", "-c", source, "-o", source.with_suffix(".o"))
    assert shutil.which("nm"), "this test needs nm, which comes with gcc"
    object_file = source.with_suffix(".o")
    listed = subprocess.run(["nm", "-u", object_file], capture_output=True, text=True, check=True)
    assert listed.stdout.split() == ["U", "strcmp"]


def test_a_header_of_another_export_does_not_compile(tmp_path: Path) -> None:
    first = export_program(small()[0], tmp_path)
    header = first.header.read_bytes()
    source, _ = export_program(replace(small()[0], constants=bytes(20)), tmp_path)
    first.header.write_bytes(header)
    with pytest.raises(AssertionError, match=r"model\.c and model\.h are of different exports"):
        compile_c("gcc", "-c", source, "-o", source.with_suffix(".o"))


def test_files(tmp_path: Path) -> None:
    program, _ = small()
    files = export_program(program, tmp_path, "net_1")
    assert files == (tmp_path / "net_1.c", tmp_path / "net_1.h")
    before = [path.read_bytes() for path in files]
    export_program(program, str(tmp_path), "net_1")
    assert [path.read_bytes() for path in files] == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["net_1.c", "net_1.h"]


def test_whole_files_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, _ = small()
    with pytest.raises(ProgramError, match="can't write"):
        export_program(program, tmp_path / "missing")
    (tmp_path / "model.c").mkdir()
    with pytest.raises(ProgramError, match=r"model\.c: it is a folder"):
        export_program(program, tmp_path)
    (tmp_path / "model.c").rmdir()
    files = export_program(program, tmp_path)
    before = [path.read_bytes() for path in files]

    def full(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.chmod", full)
    with pytest.raises(ProgramError, match="No space left on device"):
        export_program(replace(program, constants=bytes(20)), tmp_path)
    assert [path.read_bytes() for path in files] == before
    assert sorted(tmp_path.iterdir()) == sorted(files)


@pytest.mark.parametrize("name", ["", "1st", "_x", "a-b", "a b", "é", "a/b", "x\n"])
def test_names_that_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match=r"the driver's name is .*; allowed: a letter"):
        export_program(small()[0], tmp_path, name)
    assert list(tmp_path.iterdir()) == []


def test_a_program_without_outputs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match="no output buffer"):
        export_program(replace(small()[0], buffers=()), tmp_path)
