"""Fourier transforms against numpy's."""

from __future__ import annotations

import numpy as np
import pytest

from tests.frontend.cases import normal
from tests.frontend.relay.convert_cases import Case, Cases, refuses

SOUND, WINDOW = normal(2, 40), np.hanning(16).astype("float32")
RE, IM = normal(3, 10), normal(3, 10, seed=1)


def spectra(onesided: bool, normalized: bool) -> np.ndarray:
    frames = np.stack([SOUND[:, i : i + 16] * WINDOW for i in range(0, 25, 5)], 1)
    found = np.fft.rfft(frames) if onesided else np.fft.fft(frames)
    found = found.transpose(0, 2, 1) / (4 if normalized else 1)
    return np.stack([found.real, found.imag], -1).astype("float32")


def parts(found: np.ndarray) -> list[np.ndarray]:
    return [found.real.astype("float32"), found.imag.astype("float32")]


FRAMES = {"n_fft": 16, "hop_length": 5, "win_length": 16}
CASES = Cases(
    [
        Case(
            "stft",
            "stft",
            [SOUND, WINDOW],
            {**FRAMES, "onesided": True, "normalized": False},
            spectra(True, False),
            runtime=(0, 1),
            rtol=1e-4,
        ),
        Case(
            "stft_whole",
            "stft",
            [SOUND, WINDOW],
            {**FRAMES, "onesided": False, "normalized": True},
            spectra(False, True),
            rtol=1e-4,
        ),
        Case(
            "dft",
            "dft",
            [RE, IM],
            {"inverse": False},
            parts(np.fft.fft(RE + 1j * IM)),
            runtime=(0, 1),
            rtol=1e-4,
        ),
        Case(
            "dft_inverse",
            "dft",
            [RE, IM],
            {"inverse": True},
            parts(np.fft.ifft(RE + 1j * IM)),
            rtol=1e-4,
        ),
    ]
)


@pytest.mark.parametrize("name", CASES.cases)
def test_operator(name: str) -> None:
    CASES.check(name)


def test_refusals() -> None:
    refuses("stft", [SOUND[0], WINDOW], FRAMES, "the data has 1 dimensions; it must have 2")
    refuses("stft", [SOUND[:, :9], WINDOW], FRAMES, "n_fft is 16; there are 9 samples")
