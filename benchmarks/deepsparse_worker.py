"""Run a model in DeepSparse for another process; needs DeepSparse and NumPy alone.

Arguments: MODEL INPUTS.npz THREADS, the inputs in the model's order. It answers in lines: "ready"
and the version once the model is compiled; then to "run" the seconds that a run took; to "save"
and a file's name "saved", when the outputs of the last run lie there as .npz; or, whatever it was
asked, "error" and the reason. It ends with its input.

DeepSparse 1.8 needs NumPy 1 and Python 3.11 or older, which is why it gets an interpreter of its
own (see `benchmarks.deepsparse_engine`).
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import TextIO


def main() -> None:
    """Compile, then obey."""
    # The engine prints on standard output, too: from here on only this file's answers go there.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    try:
        serve(*sys.argv[1:4], answers)
    # Whatever fails in here has to be told to the process that waits for an answer.
    except Exception as error:
        print("error", f"{type(error).__name__}: {error}".replace("\n", " "), file=answers)


def serve(model: str, inputs: str, threads: str, answers: TextIO) -> None:
    """Answer the commands on standard input."""
    import deepsparse
    import numpy as np

    with np.load(inputs) as file:
        arrays = [file[name] for name in file.files]
    # Batches stay as the model has them: an LSTM's first dimension is time.
    engine = deepsparse.compile_model(model, batch_size=None, num_cores=int(threads))
    outputs = engine.run(arrays)
    print("ready", deepsparse.__version__, file=answers)

    def run() -> str:
        nonlocal outputs
        start = time.perf_counter()
        outputs = engine.run(arrays)
        return repr(time.perf_counter() - start)

    def save(file: str) -> str:
        np.savez(file, *outputs)
        return "saved"

    commands: dict[str, Callable[..., str]] = {"run": run, "save": save}
    for line in sys.stdin:
        command, _, argument = line.strip().partition(" ")
        print(commands[command](*[argument] if argument else []), file=answers)


if __name__ == "__main__":
    main()
