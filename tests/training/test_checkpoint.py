"""Checkpoints come back whole, and only to the run that they are of."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.training.networks import convnet, nn, torch
from tvm_ext.errors import ArtifactError, CheckpointError
from tvm_ext.training.checkpoint import Checkpoint, open_checkpoint

ADAM = torch.optim.Adam


def opened(path: Path, model: Any = None, optimizer: Any = ADAM, **run: Any) -> Checkpoint:
    checkpoint = open_checkpoint(path, model=model or convnet(), optimizer=optimizer, **run)
    assert checkpoint is not None
    return checkpoint


def test_states_come_back(tmp_path: Path) -> None:
    path = tmp_path / "run.pt"
    checkpoint = opened(path, seed=1)
    assert checkpoint.load() is None
    checkpoint.save({"a": torch.arange(3), "b": [1, "x", (2.5, None)]})
    state = opened(path, seed=1).load()
    assert state is not None
    assert state["a"].tolist() == [0, 1, 2]
    assert state["b"] == [1, "x", (2.5, None)]
    assert [p.name for p in tmp_path.iterdir()] == ["run.pt"]


def test_without_a_path_there_is_none() -> None:
    assert open_checkpoint(None, model=convnet(), optimizer=ADAM) is None


@pytest.mark.parametrize(
    ("other", "what"),
    [
        ({"seed": 2}, "seed: 1, not 2"),
        ({"model": convnet(1)}, "model: "),
        ({"model": nn.Linear(1, 1)}, "model: "),
        ({"optimizer": torch.optim.AdamW}, "optimizer: Adam .*, not AdamW "),
        ({"optimizer": partial(ADAM, eps=1e-3)}, "optimizer: Adam .*, not Adam "),
    ],
)
def test_other_runs_are_refused(tmp_path: Path, other: dict[str, Any], what: str) -> None:
    path = tmp_path / "run.pt"
    opened(path, seed=1).save({})
    with pytest.raises(CheckpointError, match=f"run.pt is of a run with another {what}"):
        opened(path, **{"seed": 1, **other}).load()


def test_models_count_by_their_contents(tmp_path: Path) -> None:
    path = tmp_path / "run.pt"
    half = nn.Linear(2, 2).to(torch.bfloat16)
    opened(path, model=half, teacher=convnet()).save({})
    assert opened(path, model=half, teacher=convnet()).load() == {}
    with pytest.raises(CheckpointError, match="another teacher"):
        opened(path, model=half, teacher=convnet(1)).load()


def test_files_that_are_no_checkpoints(tmp_path: Path) -> None:
    path = tmp_path / "run.pt"
    checkpoint = opened(path)
    checkpoint.save({"a": torch.arange(1000)})
    whole = path.read_bytes()
    for content in (b"", b"text", whole[: len(whole) // 2], whole[:-1]):
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match=r"run.pt is truncated, or isn't a checkpoint"):
            checkpoint.load()
    for other in ([1, 2], {"format": 0}):
        torch.save(other, path)
        with pytest.raises(CheckpointError, match=r"run.pt isn't a checkpoint of format 1"):
            checkpoint.load()


def test_objects_with_code_are_not_loaded(tmp_path: Path) -> None:
    path = tmp_path / "run.pt"
    torch.save({"format": 1, "run": {}, "state": nn.Linear(1, 1)}, path)
    with pytest.raises(CheckpointError, match="can't be read"):
        opened(path).load()


def test_a_folder_that_isnt_there(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="can't write"):
        opened(tmp_path / "no" / "run.pt").save({})
