"""The tools, made from the description: closures with the name, signature and docstring of a written method."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec

import quintain as qn

from .acting import act
from .description import Action, Column, TableSpec, company, plural
from .desk import Desk
from .reading import READ

_MOST = 10_000_000
Reference = Annotated[str, msgspec.Meta(min_length=1, max_length=160)]
Limit = Annotated[int, msgspec.Meta(ge=1, le=50)]
_TYPES: dict[str, Any] = {
    "text": Annotated[str, msgspec.Meta(min_length=1, max_length=160)],
    "note": Annotated[str, msgspec.Meta(min_length=1, max_length=2000)],
    "ref": Reference,
    "money": Annotated[int, msgspec.Meta(ge=0, le=_MOST)],
    "count": Annotated[int, msgspec.Meta(ge=1, le=_MOST)],
    "int": Annotated[int, msgspec.Meta(ge=0, le=_MOST)],
    "signed": Annotated[int, msgspec.Meta(ge=-_MOST, le=_MOST)],
    "date": Annotated[str, msgspec.Meta(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")],
    "time": str,
    "flag": bool,
}
_UNITS = {"money": "whole euros", "date": "YYYY-MM-DD", "flag": "true or false", "note": "free text"}
_DOES = {"create": "Create a", "edit": "Change fields of a", "remove": "Remove a"}


def enterprise() -> type[Desk]:
    """The State class with every tool of the description."""
    methods = {action.name: _method(action) for action in company().actions.values()}
    made = msgspec.defstruct(
        "Enterprise", [], bases=(Desk,), namespace=methods, module=__name__, kw_only=True, weakref=True
    )
    made.__doc__ = "The company, with a tool for each action of its description."
    return made  # type: ignore[return-value]  # its base says what it is


def _method(action: Action) -> Callable[..., Any]:
    run: Callable[[Desk, Action, dict[str, Any]], Any] = READ.get(action.kind, act)

    def method(self: Desk, **arguments: Any) -> Any:
        return run(self, action, arguments)

    parameters = _parameters(action)
    method.__name__ = action.name
    method.__qualname__ = f"Enterprise.{action.name}"
    method.__doc__ = _docstring(action, parameters)
    method.__annotations__ = {name: type_ for name, (type_, _, _) in parameters.items()}
    method.__signature__ = _signature(parameters)  # type: ignore[attr-defined]  # inspect reads it
    mark: Callable[[Callable[..., Any]], Callable[..., Any]] = qn.tool
    return mark(method)


def _parameters(action: Action) -> dict[str, tuple[Any, Any, str]]:
    """Name to type, default and description."""
    found: dict[str, tuple[Any, Any, str]] = {}
    table = company().tables.get(action.table)
    if table is not None and action.kind in {"get", "change", "remove"}:
        found[table.parameter] = (Reference, inspect.Parameter.empty, _how_to_name(table))
    for column in sorted(action.parameters, key=lambda column: column.is_optional):
        type_: Any = Literal[column.options] if column.options else _TYPES[column.kind]
        default = None if column.is_optional else inspect.Parameter.empty
        found[column.name] = (type_ | None if column.is_optional else type_, default, _about(column))
    if table is not None and action.kind == "find":
        if table.label:
            found["text"] = (_TYPES["ref"] | None, None, f"Part of the {table.label}.")
        found["limit"] = (Limit, 20, "Most rows to show.")
    return found


def _signature(parameters: dict[str, tuple[Any, Any, str]]) -> inspect.Signature:
    known = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)]
    for name, (type_, default, _) in parameters.items():
        known.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=type_))
    return inspect.Signature(known)


def _docstring(action: Action, parameters: dict[str, tuple[Any, Any, str]]) -> str:
    lines = [summary(action)]
    if parameters:
        lines += ["", "Args:", *(f"    {name}: {doc}" for name, (_, _, doc) in parameters.items())]
    return "\n".join(lines)


def summary(action: Action) -> str:
    """Returns the description of a tool: its effect, its conditions and its users."""
    parts = [action.doc or _does(action)]
    if action.source:
        parts.append(f"It must be {' or '.join(action.source)}.")
    if action.rules:
        parts.append(f"Rules: {'; '.join(rule.says.removeprefix('403: ') for rule in action.rules)}.")
    if action.role and action.own:
        parts.append(f"For its {action.own}, or the role {action.role}.")
    elif action.role:
        parts.append(f"Needs the role {action.role}.")
    elif action.own:
        parts.append(f"Only for its {action.own.replace('_', ' ')}.")
    return " ".join(parts)


def _does(action: Action) -> str:
    table = company().tables[action.table]
    match action.kind:
        case "find":
            return f"List {plural([table.name])}: {table.about[0].lower()}{table.about[1:]}. Filters combine."
        case "get":
            below = f", with its {plural(action.children)}" if action.children else ""
            return f"Show one {table.one}{below}."
        case _:
            moved = f"; it becomes {action.target}" if action.target else ""
            if "_" in action.verb:
                words = action.name.removeprefix(f"{action.department}_").replace("_", " ")
                return f"{words.capitalize()}{moved}."
            begin = _DOES.get(action.verb, f"{action.verb.capitalize()} a")
            return f"{_article(begin, table.one)} {table.one}{moved}."


def _article(words: str, noun: str) -> str:
    return f"{words}n" if noun[0] in "aeiou" else words


def _how_to_name(table: TableSpec) -> str:
    by_name = f" or exact {table.label}" if table.label else ""
    return f"Key ({table.code}-...){by_name} of the {table.one}."


def _about(column: Column) -> str:
    words = column.doc[:1].upper() + column.doc[1:] or column.name.replace("_", " ").capitalize()
    if column.kind == "ref":
        return (
            f"{words}: {_how_to_name(company().tables[column.table]).lower()}"
            if column.doc
            else _how_to_name(company().tables[column.table])
        )
    unit = _UNITS.get(column.kind)
    return f"{words.removesuffix('.')}, {unit}." if unit else f"{words.removesuffix('.')}."


@functools.cache
def described() -> dict[str, str]:
    """Every generated tool with what it does."""
    return {action.name: summary(action) for action in company().actions.values()}
