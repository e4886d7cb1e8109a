"""Run SCALE-Sim on the files of a folder, for another process; needs SCALE-Sim alone.

Argument: a folder with ``scale.cfg``, ``topology.csv`` and ``layout.csv``. SCALE-Sim writes its
reports into a folder below it, named by the configuration's run; this file prints its version.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path


def main() -> None:
    """Simulate."""
    from scalesim.scale_sim import scalesim

    folder = Path(sys.argv[1])
    simulator = scalesim(
        # Traces would be gigabytes.
        save_disk_space=True,
        verbose=False,
        config=str(folder / "scale.cfg"),
        topology=str(folder / "topology.csv"),
        layout=str(folder / "layout.csv"),
    )
    simulator.run_scale(top_path=str(folder))
    print(version("scalesim"))


if __name__ == "__main__":
    main()
