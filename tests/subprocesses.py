"""Run a model in another process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from tests import models


def in_subprocess(script: str, model: Path, tmp_path: Path) -> np.ndarray:
    """The output of the model `convnet` from a script with arguments MODEL IN.npy OUT.npy."""
    inputs = models.inputs_for(models.convnet())
    np.save(tmp_path / "x.npy", inputs["x"])
    subprocess.run(
        [sys.executable, "-c", script, str(model), "x.npy", "y.npy"], cwd=tmp_path, check=True
    )
    return np.load(tmp_path / "y.npy")
