"""Tools: typed methods of the state that an actor may call. `executor` applies their time limit."""

from __future__ import annotations

import inspect
import json
import re
import typing
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast, overload

import msgspec

from . import codec
from .contract import NOTHING, Contract, check_names
from .errors import DefinitionError
from .state import State, parts
from .trace import Block, Content, Image, Observation, Text

F = TypeVar("F", bound=Callable[..., Any])
_MARK = "__quintain_tool__"
_CONTRACT = "__quintain_contract__"
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@overload
def tool(method: F, /) -> F: ...
@overload
def tool(
    *,
    roles: tuple[str, ...] = ...,
    reads: tuple[str, ...] = ...,
    writes: tuple[str, ...] = ...,
    order: str = ...,
    unit: dict[str, str] = ...,
    filters: dict[str, str] | tuple[str, ...] = ...,
) -> Callable[[F], F]: ...
def tool(
    method: Callable[..., Any] | None = None,
    /,
    *,
    roles: tuple[str, ...] = ("agent",),
    reads: tuple[str, ...] | None = None,
    writes: tuple[str, ...] | None = None,
    order: str = "",
    unit: dict[str, str] | None = None,
    filters: dict[str, str] | tuple[str, ...] = (),
) -> Any:
    """Marks a method of a State as a tool. Models read its docstring and its type hints.

    All but `roles` is a contract: no actor reads it, and the audit takes it for granted where it would else infer, and
    proves where the tool breaks it. Names are those of fields of the State, of a table's rows and of parts, such as
    "tickets", "tickets.status" or "crm.tickets"; a table's name stands for all its rows, and for new and removed ones.

    Args:
        method: The method, where the decorator has no parentheses.
        roles: Actors that may call the tool, such as ("agent", "user").
        reads: All that the result depends on.
        writes: All that a call may change; an empty tuple says that the tool only reads.
        order: Fields by which the listed rows are sorted, such as "created desc, id"; numbers, or text by alphabet.
        unit: Unit of each parameter or field of the result, such as {"amount": "cents"}.
        filters: Parameters that only narrow a list. A dict names for each the field of the rows, such as
            {"status": "tickets.status"}: the rows kept are exactly those whose field has the value or, if it is a list,
            holds it.

    Raises:
        DefinitionError: `roles` is empty, or one string; a contract has another type than shown here.
    """
    if isinstance(cast(object, roles), str) or not roles:
        raise DefinitionError(f"roles must be a tuple of names such as ('agent', 'user'), got {roles!r}")
    try:
        given: dict[str, Any] = {"reads": reads, "writes": writes, "order": order, "filters": filters}
        contract = msgspec.convert(given | {"unit": unit or {}}, Contract)
    except msgspec.ValidationError as error:
        raise DefinitionError(f"the contract of a tool: {error}") from error

    def mark(method: Any) -> Any:
        setattr(method, _MARK, roles)
        setattr(method, _CONTRACT, contract)
        return method

    return mark if method is None else mark(method)


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """One tool as an actor sees it, and the decoder that guards it.

    Attributes:
        name: Unique in its world; the name of a part stands in front of the part's tools.
        description: The docstring without its `Args:`.
        parameters: JSON schema of the arguments, an object.
        roles: Who may call it.
        arguments: The type that a call is decoded into.
        path: Field names down to the part whose method it is, then the method's name.
        contract: Facts that its author declares for the audit, with names as seen from its part; no actor sees them.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    roles: tuple[str, ...]
    arguments: type[msgspec.Struct]
    path: tuple[str, ...]
    contract: Contract = NOTHING

    def decode(self, arguments: str, *, strict: bool = True) -> dict[str, Any]:
        """Parse a model's JSON arguments; those left out take their defaults.

        Raises:
            msgspec.DecodeError: They are no JSON, or do not fit; the message ends in the path to the culprit.
        """
        source = arguments.strip() or "{}"
        try:
            parsed = msgspec.json.decode(source, type=self.arguments) if strict else self._lenient(source)
            codec.dumps(parsed, canonical=False)  # What no snapshot can hold, no world shall get.
        except msgspec.DecodeError:
            raise
        except (OverflowError, ValueError) as error:
            raise msgspec.ValidationError(str(error)) from error
        return {name: getattr(parsed, name) for name in parsed.__struct_fields__}

    def _lenient(self, source: str) -> msgspec.Struct:
        loose = msgspec.json.decode(source, type=dict[str, Any])
        loose = {key: value for key, value in loose.items() if key in self.arguments.__struct_fields__}
        parsed = msgspec.convert(loose, self.arguments, strict=False)
        codec.text(msgspec.to_builtins(parsed, str_keys=True))  # "nan" is not a number that JSON could have said.
        return parsed

    def bind(self, state: State) -> Callable[..., Any]:
        """The method of this very world (or of its part)."""
        target: Any = state
        for name in self.path:
            target = getattr(target, name)
        return target  # type: ignore[no-any-return]  # what @tool marked is callable


def observe(result: Any) -> Content:
    """Returns what an actor reads of a tool's result: text as it is, blocks as they are, anything else as JSON.

    Of an `Observation`, its content.

    Raises:
        TypeError, ValueError: The result has no JSON form; the tool is broken.
    """
    if isinstance(result, Observation):
        return observe(result.content)
    if isinstance(result, Text | Image):
        return (result,)
    if isinstance(result, tuple | list) and result:
        blocks = cast(Sequence[object], result)
        if all(isinstance(block, Text | Image) for block in blocks):
            return cast(tuple[Block, ...], tuple(blocks))
    return codec.text(result)


def result_data(result: Any) -> dict[str, Any]:
    """Returns a copy of the data of a tool's result, as JSON holds it; empty if the result is not an `Observation`.

    Raises:
        TypeError, ValueError: The data has no JSON form, or is not a dict; the tool is broken.
    """
    if not isinstance(result, Observation):
        return {}
    return msgspec.json.decode(codec.text((result.data,)), type=tuple[dict[str, Any]])[0]


def collect(type_: type[State], prefix: tuple[str, ...] = ()) -> dict[str, Tool]:
    """All tools of a State class and of its parts, in definition order, base classes first.

    Raises:
        DefinitionError: A tool without docstring, type or `Args:` line, a name that is taken or that no wire accepts.
    """
    members: dict[str, Any] = {}
    for cls in reversed(type_.__mro__):
        members |= {name: member for name, member in vars(cls).items() if getattr(member, _MARK, None)}
    found = {one.name: one for one in (_describe(type_, member, prefix) for member in members.values())}
    for name, part in parts(type_).items():
        for one in collect(part, (*prefix, name)).values():
            if one.name in found:
                raise DefinitionError(f"two tools are named {one.name!r}: {found[one.name].path} and {one.path}")
            found[one.name] = one
    return found


def _describe(type_: type[State], method: Callable[..., Any], prefix: tuple[str, ...]) -> Tool:
    path = (*prefix, method.__name__)
    name = "_".join(path)
    if not _NAME.fullmatch(name):
        raise DefinitionError(f"tool name {name!r} must match {_NAME.pattern}")
    summary, documented = parse_docstring(inspect.getdoc(method) or "")
    if not summary:
        raise DefinitionError(f"tool {name!r} of {type_.__name__} has no docstring, so no model can know what it does")
    try:
        arguments = msgspec.defstruct(name, _fields(name, method, documented), kw_only=True, forbid_unknown_fields=True)
        codec.learn(arguments)
        (own,), components = msgspec.json.schema_components([arguments])
        # A round trip, so that schemas hold only what JSON can: msgspec leaves tuples and default objects in them.
        definitions: dict[str, Any] = json.loads(codec.json(components))
    except (TypeError, NameError) as error:
        raise DefinitionError(f"tool {name!r} of {type_.__name__}: {error}") from error
    schema = definitions.pop(own["$ref"].rpartition("/")[2])
    schema.pop("title", None)
    for parameter, words in documented.items():
        schema["properties"][parameter]["description"] = words
    if definitions:
        schema["$defs"] = definitions
    roles, contract = getattr(method, _MARK), getattr(method, _CONTRACT, NOTHING)
    check_names(contract, type_, method)
    about: dict[str, Any] = {"name": name, "description": summary, "parameters": schema, "arguments": arguments}
    return Tool(**about, roles=roles, path=path, contract=contract)


def _fields(name: str, method: Callable[..., Any], documented: dict[str, str]) -> list[Any]:
    hints = typing.get_type_hints(method, include_extras=True)
    fields: list[Any] = []
    first, *parameters = inspect.signature(method).parameters.values()
    if first.name in documented:
        raise DefinitionError(f"tool {name!r}: the first parameter of a tool is self, got {first.name!r}")
    for stray in documented.keys() - {parameter.name for parameter in parameters}:
        raise DefinitionError(f"tool {name!r}: Args: describes {stray!r}, which is not a parameter")
    for parameter in parameters:
        if (kind := parameter.kind) not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise DefinitionError(f"tool {name!r}: {parameter.name!r} is {kind.description}; a call names each")
        needed = {"a type": hints, f"a line under Args:, as '    {parameter.name}: TEXT'": documented}
        if missing := " and ".join(what for what, known in needed.items() if parameter.name not in known):
            raise DefinitionError(f"tool {name!r}: parameter {parameter.name!r} needs {missing}")
        default = () if parameter.default is parameter.empty else (parameter.default,)
        fields.append((parameter.name, hints[parameter.name], *default))
    return fields


def parse_docstring(doc: str) -> tuple[str, dict[str, str]]:
    """Split a Google-style docstring into its prose and its `Args:` descriptions."""
    head, _, tail = f"\n{doc}".partition("\nArgs:\n")
    arguments: dict[str, str] = {}
    last = ""
    for line in tail.splitlines():
        if line and not line.startswith(" "):
            break
        if match := re.match(r"    (\w+):(?: |$)(.*)", line):
            last = match[1]
            arguments[last] = match[2].strip()
        elif last and line.strip():
            arguments[last] = f"{arguments[last]} {line.strip()}".strip()
    prose = re.split(r"\n(?:Returns|Raises):\n", head)[0]
    return prose.strip(), arguments
