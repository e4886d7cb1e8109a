"""The names in the zip, and the version of their format."""

FORMAT_VERSION = 1
METADATA, PLAN, PROGRAM, CODE, CONSTANTS = (
    "metadata.json",
    "plan.yaml",
    "program.json",
    "code.so",
    "constants.bin",
)
CHUNK = 1 << 20
"""Bytes to read at once."""
