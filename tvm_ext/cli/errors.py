"""What a user can do wrong ends the command with one line on stderr."""

from __future__ import annotations

from typing import Any

import click

from tvm_ext.errors import TvmExtError


class UserError(click.ClickException):
    """One line on stderr, exit code 1."""

    def show(self, file: Any = None) -> None:
        line = "; ".join(part.strip() for part in self.message.splitlines() if part.strip())
        click.echo(f"error: {line}", err=True)


class Group(click.Group):
    """A group whose commands turn the library's errors, and the system's, into `UserError`."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except TvmExtError as error:
            raise UserError(str(error)) from error
        except OSError as error:
            name = f"{error.filename}: " if error.filename else ""
            raise UserError(f"{name}{error.strerror or error}") from error
