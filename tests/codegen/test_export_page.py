"""docs/driver.md: its main.c runs as a process, the simulator at the other end of its pipes."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.codegen.driver_device import OK, OTHER_VARIANT, Device, compile_c
from tests.codegen.lowering_networks import Builder
from tests.markdown import ROOT, python_blocks
from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.lowering import compile_network, pack_inputs
from tvm_ext.codegen.network import Network
from tvm_ext.codegen.network_layers import MatMul
from tvm_ext.codegen.network_reference import run_reference
from tvm_ext.codegen.program_file import save_program

PAGE = "docs/driver.md"
HARDWARE = Accelerator("edge", pes=8, sram_bytes=2500)
VARIANT_BYTES = 256


def network() -> Network:
    """A convolution, an average and a product, from `x` to `y`."""
    builder = Builder(np.random.default_rng(5))
    builder.inputs.append(builder.tensor("x", (1, 3, 8, 9)))
    x = builder.pool(builder.conv("x", 11, (3, 3), pads=(1, 1, 1, 1)), "global_average")
    flat = builder.reshape(x, 1, 11)
    y = builder.tensor("y", (1, 10))
    weights = builder.weights("product", (11, 10), 10)
    builder.layers.append(MatMul(name="product", inputs=(flat,), output=y, **weights))
    return builder.network(y)


def serve(binary: Path, device: Device, image: np.ndarray) -> tuple[int, dict[str, list[bytes]]]:
    """Run a program with its board here; its exit status, and what it said by kind of request."""
    said: dict[str, list[bytes]] = {"i": [], "w": [], "r": [], "e": [], "c": [], "y": [], "m": []}
    with subprocess.Popen([binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        while head := process.stdout.read(9):
            kind, address, count = struct.unpack("<cII", head)
            letter = kind.decode()
            sent = process.stdout.read(count) if letter in "weym" else b""
            said[letter].append(sent)
            reply = b""
            if letter == "i":
                reply = device.accelerator.variant.encode().ljust(VARIANT_BYTES, b"\0")
            elif letter == "w":
                device.write(address, sent)
            elif letter == "r":
                reply = device.read(address, count)
            elif letter == "e":
                device.execute(sent)
            elif letter == "c":
                reply = image.tobytes()
            process.stdin.write(b"\0" + reply)
            process.stdin.flush()
    return process.returncode, said


@pytest.fixture(scope="module")
def firmware(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page's main.c, compiled with what the page's Python writes."""
    folder = tmp_path_factory.mktemp("page")
    save_program(compile_network(network(), HARDWARE), folder / "net.tvmp")
    made = folder / "firmware"
    made.mkdir()
    (block,) = python_blocks(PAGE)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        exec(compile(block, PAGE, "exec"), {})
    (main,) = re.findall(r"^```c\n(.*?)^```$", (ROOT / PAGE).read_text(), re.M | re.S)
    (made / "main.c").write_text(main)
    for suffix in "ch":
        shutil.copy(Path(__file__).with_name(f"driver_board.{suffix}"), made / f"board.{suffix}")
    sources = [made / f"{name}.c" for name in ("main", "board", "model")]
    compile_c("gcc", *sources, "-o", made / "main")
    return made / "main"


def test_the_example_gives_the_network_s_values(firmware: Path) -> None:
    image = np.random.default_rng(6).integers(-128, 128, (1, 3, 8, 9)).astype("int8")
    packed = pack_inputs(network(), {"x": image})["x"]
    device = Device(HARDWARE, compile_network(network(), HARDWARE).memory_bytes)
    status, said = serve(firmware, device, packed)
    wanted = run_reference(network(), {"x": image})["y"]
    assert status == OK and said["m"] == []
    assert said["y"] == [wanted.tobytes()]
    assert len(np.unique(wanted)) > 3


def test_the_example_names_what_it_is_for(firmware: Path) -> None:
    device = Device(replace(HARDWARE, pes=16), 9)
    status, said = serve(firmware, device, np.zeros(0, "int8"))
    assert status == OTHER_VARIANT and said["w"] == said["e"] == said["y"] == []
    (message,) = said["m"]
    assert message.decode().endswith(f"the program is for {HARDWARE.variant}")


def test_links() -> None:
    for target in re.findall(r"\]\(([^)]+)\)", (ROOT / PAGE).read_text()):
        assert (ROOT / "docs" / target).exists(), target


def test_names_on_the_page_are_in_the_header(firmware: Path) -> None:
    header = firmware.with_name("model.h").read_text()
    names = set(re.findall(r"\b(?:MODEL_[A-Z]\w*[A-Z]|model_[a-z]+)\b", (ROOT / PAGE).read_text()))
    assert len(names) > 20
    assert [name for name in sorted(names) if not re.search(rf"\b{name}\b", header)] == []
