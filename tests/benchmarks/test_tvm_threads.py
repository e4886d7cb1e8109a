"""The thread pool's size, in processes of their own."""

import os
import subprocess
import sys
from pathlib import Path

from benchmarks import tvm_threads


def run_python(code):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TVM_")}
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(tvm_threads.__file__).parents[1],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_tvm_threads_change_in_process_and_do_not_pin_the_caller():
    done = run_python(
        "import os\n"
        "from benchmarks import tvm_threads\n"
        "before = os.sched_getaffinity(0)\n"
        "tvm_threads.prepare_tvm_threads(2)\n"
        "for count in (1, 2, 1): tvm_threads.set_tvm_threads(count)\n"
        "assert os.sched_getaffinity(0) == before\n"
        "tvm_threads.set_tvm_threads(3)\n"
    )
    assert "RuntimeError: TVM's pool gives 2 threads, not 3" in done.stderr


def test_prepare_tvm_threads_refuses_when_it_is_too_late():
    done = run_python(
        "import sys, types\n"
        "from benchmarks import tvm_threads\n"
        "sys.modules['tvm'] = types.ModuleType('tvm')\n"
        "tvm_threads.prepare_tvm_threads(2)\n"
    )
    assert "RuntimeError: prepare_tvm_threads must be called before tvm" in done.stderr
