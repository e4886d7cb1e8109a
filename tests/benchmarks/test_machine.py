"""The description of this machine."""

import numpy as np

from benchmarks.machine import describe_machine


def test_machine_names_what_matters():
    machine = describe_machine()
    assert machine["cpu"]
    assert machine["logical_cpus"] >= 1
    assert machine["versions"]["numpy"] == np.__version__
