"""What a Relay file that can't be read raises."""

from __future__ import annotations

from tvm_ext.errors import ModelError


class RelayError(ModelError):
    """A saved Relay module or its parameters can't be read.

    Parameters
    ----------
    message : str
        What was read, and what is allowed.
    source : str
        The file's path, or what the text is.
    where : str
        The place in it: a line and column, a node's number, an offset.
    """

    def __init__(self, message: str, source: str = "", where: str = "") -> None:
        self.message, self.source, self.where = message, source, where
        super().__init__(": ".join(part for part in (source, where, message) if part))
