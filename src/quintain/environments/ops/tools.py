"""The tools, made from the description: closures with the name, signature and docstring of a written method."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal

import msgspec

import quintain as qn
from quintain.environments.faults import reach

from .acting import act
from .description import SERVICES, Action, Curve, Service, TableSpec, actions, columns, curves, tables
from .state import ROWS, Finding, Minutes, Name, Production
from .telemetry import MINUTE, curve, log_lines, metrics

PAGE = 20
Page = Annotated[int, msgspec.Meta(ge=1, le=1000)]
Window = Annotated[int, msgspec.Meta(ge=12, le=720)]
Words = Annotated[str, msgspec.Meta(min_length=2, max_length=120)]
Findings = Annotated[tuple[Finding, ...], msgspec.Meta(min_length=1, max_length=4)]
Parameters = dict[str, tuple[Any, Any, str]]
"""Name to type, default and description."""
NONE: Any = inspect.Parameter.empty


def world(name: str, *, roles: dict[Service, tuple[str, ...]], module: str) -> type[Production]:
    """Returns a State class with the tables and tools of the description.

    Args:
        name: Name of the class.
        roles: Roles that may use the tools of a service; a service that is left out has none.
        module: Module in which the class stands.
    """
    members: dict[str, Any] = {}
    for service in SERVICES:
        if service in roles:
            made = [*_reading(service), *_logs(service), *_curves(service), *_actions(service)]
            members |= {name: qn.tool(roles=roles[service], **contract)(method) for name, method, contract in made}
    everybody = tuple(dict.fromkeys(("agent", *(role for some in roles.values() for role in some))))
    members |= {tool.__name__: qn.tool(roles=everybody, writes=())(tool) for tool in (now_is,)}
    members["wait"] = qn.tool(roles=everybody)(wait)
    if len(roles) == len(SERVICES):
        members["report"] = qn.tool(writes=("findings",))(report)
    fields: list[Any] = [(table, qn.Table[row]) for table, row in ROWS.items()]  # type: ignore[valid-type]
    kind = msgspec.defstruct(
        name, fields, bases=(Production,), namespace=members, module=module, kw_only=True, weakref=True
    )
    kind.__doc__ = "The production, with tools of the description."
    return kind  # type: ignore[return-value]  # its base says what it is


# -- tools of the desk


def now_is(self: Production) -> str:
    """Tell the time, in UTC."""
    return self.now


def wait(self: Production, minutes: Minutes) -> str:  # noqa: D417 (`self` is the world)
    """Let time pass, to see in curves and logs whether a repair helps.

    Args:
        minutes: How long.
    """
    self.clock.advance(minutes * MINUTE)
    return f"It is {self.now}."


def report(self: Production, findings: Findings) -> str:  # noqa: D417 (`self` is the world)
    """Report the root causes of the incident, all of them in one call. A later report replaces an earlier one.

    Args:
        findings: One for each root cause. The culprit is named as the list of causes says.
    """
    reach(self)
    self.findings = findings
    return f"{len(findings)} root causes are reported"


# -- tools of tables

Made = tuple[str, Callable[..., Any], dict[str, Any]]
"""Name, method and contract of a tool."""


def _reading(service: Service) -> Iterator[Made]:
    for name, spec in tables().items():
        if spec.service == service:
            yield _list(name, spec)
            yield _get(name, spec)
            if spec.search:
                yield _search(name, spec)


def _list(table: str, spec: TableSpec) -> Made:
    kinds = columns(table)
    parameters: Parameters = {}
    for name in spec.filters:
        kind = kinds[name]
        type_: Any = bool if kind.kind == "flag" else Literal[kind.options] if kind.options else Name
        parameters[name] = (type_ | None, None, f"Only {table} with this {name.replace('_', ' ')}.")

    def method(self: Production, **given: Any) -> Any:
        reach(self)
        wanted = {name: given[name] for name in spec.filters if given[name] is not None}
        for name, value in wanted.items():
            if kinds[name].target:
                self.need(kinds[name].target, value)
        rows = [
            (key, row)
            for key, row in self.table(table).items()
            if all(getattr(row, name) == value for name, value in wanted.items())
        ]
        return paged([_shown(spec, key, row, names=spec.brief) for key, row in sort(rows, spec.order)], given["page"])

    order = f"; {spec.order}" if spec.order else ""
    doc = f"List {table}: {spec.about}{order}. Filters combine."
    contract = {
        "reads": (table, *dict.fromkeys(kinds[name].target for name in spec.filters if kinds[name].target)),
        "writes": (),
        "order": spec.order,
        "filters": {name: f"{table}.{name}" for name in spec.filters},
    }
    return _made(f"{spec.service}_list_{table}", method, doc, parameters=parameters | _PAGED, contract=contract)


def _get(table: str, spec: TableSpec) -> Made:
    def method(self: Production, **given: Any) -> Any:
        reach(self)
        return _shown(spec, given[spec.one], self.need(table, given[spec.one]))

    doc = f"Show one {spec.one} with all its fields."
    return _made(
        f"{spec.service}_get_{spec.one}", method, doc, parameters=_key(spec), contract={"reads": (table,), "writes": ()}
    )


def _search(table: str, spec: TableSpec) -> Made:
    def method(self: Production, **given: Any) -> Any:
        reach(self)
        words = given["text"].casefold()
        rows = [
            (key, row)
            for key, row in self.table(table).items()
            if any(words in str(text).casefold() for text in (key, *(getattr(row, name) for name in spec.search)))
        ]
        return paged([_shown(spec, key, row, names=spec.brief) for key, row in sort(rows, spec.order)], given["page"])

    doc = f"Search {table} for a text in the name or in {' or '.join(spec.search)}; case does not count."
    parameters: Parameters = {"text": (Words, NONE, "Text to find, as it stands.")}
    contract: dict[str, Any] = {"reads": (table,), "writes": (), "order": spec.order}
    return _made(f"{spec.service}_search_{table}", method, doc, parameters=parameters | _PAGED, contract=contract)


def sort(rows: list[tuple[str, Any]], order: str) -> list[tuple[str, Any]]:
    """Returns rows in an order such as "at desc"; equal ones keep theirs."""
    if not order:
        return rows
    name, _, way = order.partition(" ")
    return sorted(rows, key=lambda pair: getattr(pair[1], name), reverse=way == "desc")


def paged(rows: list[Any], page: int) -> dict[str, Any]:
    """Returns one page of a list."""
    part = rows[(page - 1) * PAGE : page * PAGE]
    return {"found": len(rows), "page": page, "pages": -(-len(rows) // PAGE), "rows": part}


def _shown(spec: TableSpec, key: str, row: Any, *, names: tuple[str, ...] = ()) -> dict[str, Any]:
    return {spec.one: key} | {name: getattr(row, name) for name in names or row.__struct_fields__}


# -- tools of telemetry


def _logs(service: Service) -> Iterator[Made]:
    if service != "errors":
        return
    name: Any = Name
    words: Any = Words
    level: Any = Literal["DEBUG", "INFO", "WARN", "ERROR"]
    parameters: Parameters = {
        "service": (name | None, None, "Only lines of this service."),
        "level": (level | None, None, "Only lines of this level."),
        "text": (words | None, None, "Only lines with this text; case does not count."),
        "minutes": (Window, 30, "Minutes up to now."),
    }

    def lines(self: Production, given: dict[str, Any]) -> Iterator[tuple[str, str, str, str]]:
        reach(self)
        if given["service"] is not None:
            self.need("services", given["service"])
        kinds = [
            kind
            for kind in self.logs
            if given["service"] in {None, kind.service} and given["level"] in {None, kind.level}
        ]
        words = (given["text"] or "").casefold()
        for line in log_lines(kinds, now=self.clock.now, minutes=given["minutes"]):
            if words in line[3].casefold():
                yield line

    def search(self: Production, **given: Any) -> Any:
        return paged([" ".join(line) for line in lines(self, given)], given["page"])

    def count(self: Production, **given: Any) -> Any:
        found = Counter((line[1], line[2]) for line in lines(self, given))
        return [{"service": one, "level": level, "lines": number} for (one, level), number in sorted(found.items())]

    doc = "Search the logs of all services, the newest line first. Filters combine."
    yield _made("errors_search_logs", search, doc, parameters=parameters | _PAGED, contract={"writes": ()})
    doc = "Count log lines by service and level. Filters combine."
    yield _made("errors_count_logs", count, doc, parameters=parameters, contract={"writes": ()})


def _curves(service: Service) -> Iterator[Made]:
    for one in curves():
        if one.name.startswith(f"{service}_"):
            yield _curve(one)


def _curve(one: Curve) -> Made:
    spec = tables()[one.on]

    def method(self: Production, **given: Any) -> Any:
        reach(self)
        row, minutes = given[spec.one], given["minutes"]
        self.need(one.on, row)
        points = curve(row, one.metric, shifts=self.shifts, now=self.clock.now, minutes=minutes, salt=self.salt)
        return {"unit": metrics()[one.metric].unit, "points": points}

    window: Parameters = {"minutes": (Window, 60, "Minutes up to now, in twelve steps.")}
    return _made(one.name, method, one.doc, parameters=_key(spec) | window, contract={"writes": ()})


# -- tools that change something


def _actions(service: Service) -> Iterator[Made]:
    for name, action in actions().items():
        if name.startswith(f"{service}_"):
            yield _action(name, action)


def _action(tool: str, action: Action) -> Made:
    spec = tables()[action.on]

    def method(self: Production, **given: Any) -> Any:
        return act(self, tool, given)

    needs = [f"{name} {' or '.join(map(str, values))}" for name, values in action.needs.items()]
    doc = f"{action.doc} It needs {' and '.join(needs)}." if needs else action.doc
    more: Parameters = {name: (_type(text), NONE, f"The {name}.") for name, text in action.args.items()}
    return _made(tool, method, doc, parameters=_key(spec) | more, contract={})


def _type(text: str) -> Any:
    kind, *limits = text.split()
    if kind == "text":
        return Name
    number: Any = int if kind == "int" else float
    return Annotated[number, msgspec.Meta(ge=number(limits[0]), le=number(limits[1]))]


# -- methods

_PAGED: Parameters = {"page": (Page, 1, f"Page of {PAGE} rows, from 1.")}


def _key(spec: TableSpec) -> Parameters:
    return {spec.one: (Name, NONE, f"Name of the {spec.one}.")}


def _made(name: str, method: Callable[..., Any], doc: str, *, parameters: Parameters, contract: dict[str, Any]) -> Made:
    """Gives a closure the name, signature and docstring of a written method."""
    known = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)]
    known += [
        inspect.Parameter(parameter, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=type_)
        for parameter, (type_, default, _) in parameters.items()
    ]

    def bound(self: Production, **given: Any) -> Any:
        defaults = {parameter: default for parameter, (_, default, _) in parameters.items() if default is not NONE}
        return method(self, **defaults | given)

    bound.__name__, bound.__qualname__ = name, f"Ops.{name}"
    lines = ["", "Args:", *(f"    {parameter}: {words}" for parameter, (_, _, words) in parameters.items())]
    bound.__doc__ = "\n".join([doc, *lines])
    bound.__annotations__ = {parameter: type_ for parameter, (type_, _, _) in parameters.items()}
    bound.__signature__ = inspect.Signature(known)  # type: ignore[attr-defined]  # inspect reads it
    return name, bound, contract
