"""Names in contracts against paths of changes: "crm.tickets.status" covers "crm.tickets/7/status"."""

from __future__ import annotations

from collections.abc import Iterable


def covers(name: str, path: str) -> bool:
    """True if all that may change at a path is part of what a name stands for."""
    top, *rest = path.split("/")
    inner = _inner(name, top)
    # A row's key stands between table and field, and may hold slashes itself.
    return inner == [] or (inner is not None and any(rest[at:][: len(inner)] == inner for at in range(len(rest))))


def touches(name: str, path: str) -> bool:
    """True if a change at a path may change what a name stands for."""
    top, *rest = path.split("/")
    inner = _inner(name, top)
    if inner is None or len(rest) < 2:  # A row that is added or removed has all fields.
        return inner is not None
    return any(rest[at:][: len(inner)] == inner[: len(rest) - at] for at in range(len(rest)))


def _inner(name: str, top: str) -> list[str] | None:
    """Returns the steps of a name below a table or field of the state; None if the name is not of it."""
    if f"{top}.".startswith(f"{name}."):
        return []
    return name.removeprefix(f"{top}.").split(".") if name.startswith(f"{top}.") else None


def is_named(top: str, names: Iterable[str]) -> bool:
    """True if a name stands for a table or field of the state, or for a part of it."""
    return any(_inner(name, top) is not None for name in names)
