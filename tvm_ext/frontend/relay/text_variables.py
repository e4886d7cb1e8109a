"""Which variable a name means at a place of a text."""

from __future__ import annotations

from tvm_ext.frontend.relay.ast import Type, Var


class Variables:
    """The variables in scope, without the percent signs of their names."""

    def __init__(self) -> None:
        self._visible: dict[str, Var] = {}
        # What each declaration hid, the last one at the end.
        self._hidden: list[tuple[str, Var | None]] = []

    @property
    def depth(self) -> int:
        """How many declarations are in force: what `leave` takes to end the scopes after it."""
        return len(self._hidden)

    def declare(self, name: str, annotation: Type | None) -> Var:
        """Make a variable, which hides another one of its name."""
        var = Var(name, annotation)
        self._hidden.append((name, self._visible.get(name)))
        self._visible[name] = var
        return var

    def leave(self, depth: int) -> None:
        """Forget the declarations since there were `depth` of them."""
        while len(self._hidden) > depth:
            name, var = self._hidden.pop()
            if var is None:
                del self._visible[name]
            else:
                self._visible[name] = var

    def find(self, name: str) -> tuple[Var | None, list[str]]:
        """The variable that a name means, and the fields that are taken of it.

        ``x.0`` is the variable of that name if there is one, else the field 0 of ``x``.
        """
        fields: list[str] = []
        while name not in self._visible:
            name, dot, index = name.rpartition(".")
            if not dot or not index.isdecimal():
                return None, []
            fields.insert(0, index)
        return self._visible[name], fields
