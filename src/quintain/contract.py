"""Contract: facts that the author of a tool declares for the audit. No actor reads them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_args

import msgspec

from .errors import DefinitionError, Frame, describe
from .state import State

_TERM = r"\w+( (asc|desc))?"


class Contract(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Declared facts of one tool, as `tool` explains them; the defaults declare nothing.

    Attributes:
        reads: Names in the state of all that results depend on; None for not declared.
        writes: Names in the state of all that the tool may change; None for not declared.
        order: Fields by which the listed rows are sorted, as in "created desc, id".
        unit: Units by parameter, or by field of the result.
        filters: Parameters that only narrow a list; as a dict, with the names of the fields that have their values.
    """

    reads: tuple[str, ...] | None = None
    writes: tuple[str, ...] | None = None
    order: Annotated[str, msgspec.Meta(pattern=rf"^({_TERM}(, {_TERM})*)?$")] = ""
    unit: dict[str, str] = {}
    filters: dict[str, str] | tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All names in the state."""
        fields = self.filters.values() if isinstance(self.filters, dict) else ()
        return (*(self.reads or ()), *(self.writes or ()), *fields)


NOTHING = Contract()


def check_names(contract: Contract, type_: type[State], method: Callable[..., Any]) -> None:
    """Checks the names in the contract of a method of a State class, as far as its annotations tell.

    Raises:
        DefinitionError: The class has no such field, or the method no such parameter; the message names the place.
    """
    wrong = [f"declares {name!r}, but {found}" for name in contract.names if (found := _unknown(type_, name))]
    names = [*inspect.signature(method).parameters][1:]
    wrong += [f"filters by {name!r}, but has the parameters {names}" for name in contract.filters if name not in names]
    if wrong:
        code = inspect.unwrap(method).__code__
        place = Frame(code.co_filename, code.co_firstlineno, method.__name__, "")
        raise DefinitionError(describe(f"tool {method.__name__!r} {wrong[0]}", [place]))


def _unknown(type_: Any, name: str) -> str:
    """Returns the fields of a class that lacks the first part of a name; empty if it has it."""
    head, _, rest = name.partition(".")
    hidden = "shared" if issubclass(type_, State) else ""
    fields = {field.name: field.type for field in msgspec.structs.fields(type_) if field.name != hidden}
    if head not in fields:
        return f"{type_.__name__} has the fields {list(fields)}"
    # The last argument of a table, dict or list is its row.
    kinds = [kind for kind in (fields[head], *get_args(fields[head])[-1:]) if isinstance(kind, type)]
    row = next((kind for kind in kinds if issubclass(kind, msgspec.Struct)), None)
    return _unknown(row, rest) if rest and row is not None else ""
