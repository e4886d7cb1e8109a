"""The function that offloaded calls call: it makes a network executable on its first run."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tvm

from tvm_ext.codegen.byoc.engine import Compiled, CompileNetwork, SimulatedNetwork
from tvm_ext.codegen.byoc.subgraph import RUN, Subgraph, read_subgraph, tensor_counts
from tvm_ext.codegen.errors import NetworkError


@dataclass
class Loaded:
    """A subgraph that has run.

    Attributes
    ----------
    subgraph : Subgraph
    compiled : callable
        What `Runtime.compile_network` made of it.
    """

    subgraph: Subgraph
    compiled: Compiled
    lock: Any = field(default_factory=threading.Lock, repr=False)


class Runtime:
    """Networks that have run, by content; each is run by one thread at a time.

    Parameters
    ----------
    compile_network : callable
        ``(network, accelerator) -> run``; ``run`` takes int8 inputs by name and returns the
        outputs. Called once for each network, on its first run. By default the network is lowered
        and simulated; the results of its last run are then in ``loaded[i].compiled.result``.
    """

    def __init__(self, compile_network: CompileNetwork = SimulatedNetwork) -> None:
        self._compile = compile_network
        self._loaded: dict[bytes, Loaded] = {}
        self._lock = threading.Lock()

    @property
    def loaded(self) -> tuple[Loaded, ...]:
        """Every network that has run, in the order of their first runs."""
        return tuple(self._loaded.values())

    def use(self, compile_network: CompileNetwork) -> None:
        """Compile networks with another function from now on, those that have run before, too."""
        with self._lock:
            self._compile = compile_network
            self._loaded.clear()

    def run(self, *tensors: Any) -> None:
        """One call: the document, inputs and constants, then the outputs, which are written.

        Raises
        ------
        NetworkError
            The document is damaged, or other tensors are given than it says.
        """
        arrays = [np.from_dlpack(tensor) for tensor in tensors]
        loaded = self._load(arrays)
        network, batch = loaded.subgraph.network, loaded.subgraph.batch
        inputs = arrays[1 : 1 + len(network.inputs)]
        outputs = arrays[len(arrays) - len(network.outputs) :]
        flip = np.uint8(128 if loaded.subgraph.unsigned else 0)
        for image in range(batch):
            # Flipping the top bit is subtracting 128.
            given = {
                name: (_part(x, image, batch).view("uint8") ^ flip).view("int8")
                for name, x in _named(network.inputs, inputs)
            }
            with loaded.lock:
                made = loaded.compiled(given)
            for name, output in _named(network.outputs, outputs):
                values = np.ascontiguousarray(made[name]).view("uint8") ^ flip
                _part(output, image, batch).view("uint8")[...] = values

    def _load(self, arrays: list[np.ndarray]) -> Loaded:
        document = arrays[0].tobytes()
        key = hashlib.sha256(document).digest()
        with self._lock:
            if key not in self._loaded:
                text = document.decode()
                inputs, outputs = tensor_counts(text)
                constants = arrays[1 + inputs : len(arrays) - outputs]
                # The caller's memory may be gone by the next run.
                subgraph = read_subgraph(text, [array.copy() for array in constants])
                compiled = self._compile(subgraph.network, subgraph.accelerator)
                self._loaded[key] = Loaded(subgraph, compiled)
            return self._loaded[key]


RUNTIME = Runtime()
"""What the registered function uses."""


def register() -> None:
    """Make the function known to TVM."""
    tvm.register_global_func(RUN, RUNTIME.run, override=True)


def _part(array: np.ndarray, image: int, batch: int) -> np.ndarray:
    rows = array.shape[0] // batch
    return array[image * rows : (image + 1) * rows]


def _named(names: tuple[str, ...], arrays: list[np.ndarray]) -> Iterable[tuple[str, np.ndarray]]:
    if len(names) != len(arrays):
        raise NetworkError(f"a call with {len(arrays)} tensors for {list(names)}")
    return zip(names, arrays, strict=True)
