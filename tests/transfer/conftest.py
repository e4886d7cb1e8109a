"""What all tests of this folder share."""

from tests.transfer.fork_servers import shared_fork_servers

__all__ = ["shared_fork_servers"]
