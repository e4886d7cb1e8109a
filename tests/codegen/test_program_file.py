"""Programs as bytes: round trips, and every kind of damage."""

import struct
import zlib
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.codegen.instructions import programs
from tests.codegen.streams import HARDWARE, program, read
from tvm_ext.codegen.errors import ProgramError
from tvm_ext.codegen.program_file import (
    decode_instructions,
    load_program,
    parse_program,
    program_bytes,
    save_program,
)

DATA = program_bytes(program(read(), constants=b"abc", memory_bytes=99, buffers=()))


@settings(max_examples=40)
@given(programs())
def test_round_trip(made):
    data = program_bytes(made)
    assert parse_program(data) == made
    assert program_bytes(parse_program(data)) == data


def test_header_by_hand():
    assert DATA[:8] == b"TVMXISA\n"
    assert struct.unpack("<HHII", DATA[8:20]) == (1, 0, len(DATA) - 20, zlib.crc32(DATA[20:]))
    assert DATA.endswith(read().encode() + bytes(16) + b"abc")


@settings(max_examples=40)
@given(programs(), st.data())
def test_truncated_bytes(made, data):
    whole = program_bytes(made)
    with pytest.raises(ProgramError):
        parse_program(whole[: data.draw(st.integers(0, len(whole) - 1))])


@settings(max_examples=40)
@given(programs(), st.data())
def test_corrupted_bytes(made, data):
    damaged = bytearray(program_bytes(made))
    # A CRC-32 finds every damage within 32 bits.
    place = data.draw(st.integers(0, len(damaged) - 1))
    width = data.draw(st.integers(1, min(4, len(damaged) - place)))
    change = data.draw(st.binary(min_size=width, max_size=width).filter(any))
    for offset, mask in enumerate(change):
        damaged[place + offset] ^= mask
    with pytest.raises(ProgramError):
        parse_program(bytes(damaged))


@settings(max_examples=40)
@given(programs(), st.binary(min_size=1, max_size=20))
def test_bytes_behind_the_end(made, tail):
    with pytest.raises(ProgramError, match="truncated or corrupted"):
        parse_program(program_bytes(made) + tail)


@given(st.binary(max_size=100))
def test_bodies_that_only_the_checksum_approves(body):
    data = struct.pack("<8sHHII", b"TVMXISA\n", 1, 0, len(body), zlib.crc32(body)) + body
    with pytest.raises(ProgramError):
        parse_program(data)


def with_names(text, count=2):
    """The program with other names, and a checksum that fits."""
    raw = text.encode()
    words = read().encode() * (count - 1) + bytes(16)
    body = struct.pack("<I", len(raw)) + raw + struct.pack("<I", count) + words
    return struct.pack("<8sHHII", b"TVMXISA\n", 1, 0, len(body), zlib.crc32(body)) + body


NAMES = '{"variant":"v","memory_bytes":9,"buffers":[],"layers":[],"tags":[[2,-1]]}'


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"v"', "5", "names can't be read: 5 is not a text"),
        ("9", '"9"', "'9' is not a whole number"),
        ("9", "true", "True is not a whole number"),
        ("[]", "[[1]]", "names can't be read"),
        ('"layers"', '"layer"', "names can't be read: 'layers'"),
        ("[[2,-1]]", "[[3,-1]]", "layer tags aren't those of 2 instructions"),
        ("[[2,-1]]", "[[3,-1],[-1,-1]]", "layer tags aren't those of 2 instructions"),
        ("{", "[" * 100_000, "names can't be read"),
    ],
)
def test_names_that_are_refused(old, new, message):
    assert len(parse_program(with_names(NAMES)).instructions) == 2
    with pytest.raises(ProgramError, match=message):
        parse_program(with_names(NAMES.replace(old, new, 1)))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "0 bytes that don't begin with a program's header"),
        (b"x" * 99, "99 bytes that don't begin with a program's header"),
        (DATA[:8] + b"\x02\x00" + DATA[10:], "for ISA version 2; allowed: 1"),
        (DATA[:10] + b"\x01\x00" + DATA[12:], "truncated or corrupted"),
        (DATA[:-1], "truncated or corrupted"),
        (DATA[:-1] + b"d", "the program's checksum is wrong: it is corrupted"),
    ],
)
def test_damage_has_a_name(data, message):
    with pytest.raises(ProgramError, match=message):
        parse_program(data)


def test_another_variant_is_refused_by_name():
    assert parse_program(DATA, HARDWARE).variant == HARDWARE.variant
    with pytest.raises(
        ProgramError, match=r"for the variant 'generic: pes=64 .*, not 'generic: pe"
    ):
        parse_program(DATA, replace(HARDWARE, pes=128))


def test_a_word_that_is_no_instruction_has_a_place():
    with pytest.raises(ProgramError, match="pc 1: unknown opcode 0xff"):
        decode_instructions(bytes(16) + b"\xff" * 16)
    with pytest.raises(ProgramError, match="pc 1: an instruction has 16 bytes, not 3"):
        decode_instructions(bytes(19))


def test_files(tmp_path):
    made = parse_program(DATA)
    save_program(made, tmp_path / "net.tvmx")
    assert load_program(tmp_path / "net.tvmx") == made
    with pytest.raises(ProgramError, match="can't read the program"):
        load_program(tmp_path / "none")
    with pytest.raises(ProgramError, match="can't write"):
        save_program(made, tmp_path / "none" / "net.tvmx")
