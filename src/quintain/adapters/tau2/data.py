"""Reading tau2-bench's own files: databases, tasks, splits and policies."""

from __future__ import annotations

import gzip
import json
import tomllib
from collections.abc import Callable, Collection
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from quintain.errors import UsageError
from quintain.table import Table

from .airline import Airline
from .airline import rows as airline_rows
from .banking import Banking, BankingSolo, Page
from .banking.records import Record, recorded
from .record import paired
from .retail import Retail
from .retail import rows as retail_rows
from .telecom import Solo, Telecom
from .telecom.rows import Bill, Customer, Device, Line, Phone, Plan, Surroundings
from .world import World

Row = TypeVar("Row")

_PLACES = (".", "domains", "tau2/domains", "data/tau2/domains")
"""Possible places of the domains in the given folder: upstream's repository, or parts of it."""


_BANK = """\
You work for Rho-Bank. Its policies are in documents: search them with web_search, and read a document whole with
web_fetch, before you act or advise. Verify a customer's identity against the database, and log it, before you show or
change the customer's data, unless a document says otherwise. Documents name further tools. Those for you: unlock one
with unlock_discoverable_agent_tool, then call it with call_discoverable_agent_tool. Those for the customer: give one
with give_discoverable_user_tool. Unlock and give only what you need.
"""


class Action(msgspec.Struct, frozen=True):
    """A call of the reference solution."""

    name: str
    arguments: dict[str, Any]
    requestor: str = "assistant"
    compare_args: list[str] | None = None
    """Arguments that count when calls are compared; None: those of the call it is compared with."""


class Function(msgspec.Struct, frozen=True):
    """A function of the world beside its tools: it prepares a task, or tells whether something is true."""

    func_name: str
    arguments: dict[str, Any]
    assert_value: bool = True


class Start(msgspec.Struct, frozen=True):
    """Changes of the domain's database with which a task begins."""

    initialization_data: Any = None
    initialization_actions: list[Function] | None = None
    message_history: Any = None


class Criteria(msgspec.Struct, frozen=True):
    """Criteria of a run. Components that are not in `reward_basis` do not count."""

    actions: list[Action] | None = None
    env_assertions: list[Function] | None = None
    communicate_info: list[str] | None = None
    nl_assertions: list[str] | None = None
    reward_basis: tuple[str, ...] = ("DB", "COMMUNICATE")


class Instructions(msgspec.Struct, frozen=True):
    """Goals, knowledge and behaviour of the customer."""

    reason_for_call: str
    task_instructions: str
    domain: str
    known_info: str | None = None
    unknown_info: str | None = None

    def __str__(self) -> str:
        parts = (
            ("Why you call", self.reason_for_call),
            ("What you know", self.known_info),
            ("What you don't know", self.unknown_info),
            ("How you behave", self.task_instructions),
        )
        return "\n\n".join(f"{title}:\n{text}" for title, text in parts if text)


class Scenario(msgspec.Struct, frozen=True):
    """The customer's side of a task."""

    instructions: Instructions | str
    persona: str | None = None

    def __str__(self) -> str:
        return f"Who you are:\n{self.persona}\n\n{self.instructions}" if self.persona else str(self.instructions)


class Entry(msgspec.Struct, frozen=True):
    """One task of the file."""

    id: str
    user_scenario: Scenario
    evaluation_criteria: Criteria | None = None
    initial_state: Start | None = None
    ticket: str | None = None


class Domain(NamedTuple):
    """Converter of a domain's files into a world."""

    state: type[World]
    build: Callable[..., World]
    """Gets the content of each file of `databases`."""
    databases: tuple[str, ...] = ("db.json",)
    policies: tuple[str, ...] = ("policy.md",)
    guides: dict[str, str] = {}
    """Further policies by name, of which the agent gets one."""
    tasks: str = "tasks.json"
    splits: str | None = "split_tasks.json"
    """None: all tasks are the split "base"."""
    solo: type[World] | None = None
    """The world of an agent who has the customer's tools too; None where the customer has none."""
    has_own_starts: bool = False
    """True if tasks may begin with rows of their own."""
    guidance: str = ""
    """What the agent has to know beside the policies."""


class Folder:
    """The files of one domain, plain or gzipped.

    Raises:
        UsageError: The domain is unknown, or the folder does not hold it.
    """

    def __init__(self, domain: str, data: str | Path) -> None:
        if domain not in DOMAINS:
            raise UsageError(f"tau2 has no domain {domain!r} here; it has {', '.join(DOMAINS)}")
        places = [Path(data) / place / domain for place in _PLACES]
        found = [place for place in places if place.is_dir()]
        if not found:
            tried = ", ".join(str(place) for place in places)
            raise UsageError(f"no data of tau2's {domain} below {str(data)!r}; tried {tried}")
        self.domain = domain
        self._path = found[0]
        self._domain = DOMAINS[domain]
        splits = () if self._domain.splits is None else (self._domain.splits,)
        for name in (
            *self._domain.databases,
            self._domain.tasks,
            *splits,
            *self._domain.policies,
            *self._domain.guides.values(),
        ):
            if not any((self._path / f"{name}{ending}").is_file() for ending in ("", ".gz")):
                raise UsageError(f"tau2's {domain} in {str(self._path)!r} lacks {name}, plain or with .gz behind it")

    def text(self, name: str) -> str:
        """Returns a file's content.

        Raises:
            UsageError: It cannot be read.
        """
        plain, packed = self._path / name, self._path / f"{name}.gz"
        try:
            return plain.read_text("utf-8") if plain.is_file() else gzip.decompress(packed.read_bytes()).decode()
        except (OSError, EOFError, ValueError) as error:
            raise UsageError(f"cannot read {name} of tau2's {self.domain}: {error}") from error

    def policy(self, guide: str) -> str:
        """Returns what the agent has to follow, with the guide of this name where the domain has several."""
        names = (*self._domain.policies, *(name for key, name in self._domain.guides.items() if key == guide))
        return "\n\n".join([*(self.text(name) for name in names), *filter(None, [self._domain.guidance])])

    def entries(self) -> dict[str, Entry]:
        """Returns all tasks by id, in the order of the file."""
        entries = self._decode(self._domain.tasks, list[Entry])
        for entry in entries:
            start = entry.initial_state or Start()
            if start.message_history or (start.initialization_data and not self._domain.has_own_starts):
                raise UsageError(
                    f"task {entry.id!r} of tau2's {self.domain} begins in a state of its own: not supported"
                )
        return {entry.id: entry for entry in entries}

    def splits(self, entries: Collection[str]) -> dict[str, list[str]]:
        """Splits names to task ids, which are among `entries`."""
        if self._domain.splits is None:
            return {"base": list(entries)}
        splits = self._decode(self._domain.splits, dict[str, list[str]])
        unknown = {name for names in splits.values() for name in names if name not in entries}
        if unknown:
            raise UsageError(f"split_tasks.json of tau2's {self.domain} names unknown tasks: {sorted(unknown)}")
        return splits

    def world(self) -> World:
        """Returns the database as every task finds it."""
        names = self._domain.databases
        try:
            return self._domain.build(*(_parsed(name, self.text(name)) for name in names))
        except (ValueError, KeyError) as error:
            raise UsageError(f"{' or '.join(names)} of tau2's {self.domain}: {error!r}") from error

    def _decode(self, name: str, type_: type[Row]) -> Row:
        try:
            return msgspec.convert(_parsed(name, self.text(name)), type_)
        except ValueError as error:  # msgspec.ValidationError is one
            raise UsageError(f"{name} of tau2's {self.domain}: {error}") from error


def _parsed(name: str, text: str) -> Any:
    if name.endswith(".jsonl"):
        return [json.loads(line) for line in text.splitlines()]
    return tomllib.loads(text) if name.endswith(".toml") else json.loads(text)


def _retail(raw: dict[str, Any]) -> World:
    raw = paired(raw, retail_rows.PAIRED)
    return Retail(
        products=_table(retail_rows.Product, raw["products"]),
        users=_table(retail_rows.User, raw["users"]),
        orders=_table(retail_rows.Order, raw["orders"]),
    )


def _airline(raw: dict[str, Any]) -> World:
    raw = paired(raw, airline_rows.PAIRED)
    dates = {
        f"{key} {day}": status for key, flight in raw["flights"].items() for day, status in flight["dates"].items()
    }
    flights = {key: flight | {"days": list(flight["dates"])} for key, flight in raw["flights"].items()}
    return Airline(
        flights=_table(airline_rows.Flight, flights),
        dates=_table(airline_rows.FlightDate, dates),
        users=_table(airline_rows.User, raw["users"]),
        reservations=_table(airline_rows.Reservation, raw["reservations"]),
    )


def _telecom(raw: dict[str, Any], user: dict[str, Any]) -> World:
    for row in (*raw["devices"], *raw["customers"]):
        for name in ("activation_date", "last_esim_transfer_date", "created_at"):
            if row.get(name):
                row[name] = str(datetime.fromisoformat(row[name]))

    def rows(name: str, type_: type[Row]) -> Table[Row]:
        return _table(type_, {row[f"{name}_id"]: row for row in raw[f"{name}s"]})

    return Telecom(
        plans=rows("plan", Plan),
        customers=rows("customer", Customer),
        lines=rows("line", Line),
        bills=rows("bill", Bill),
        devices=rows("device", Device),
        phone=msgspec.convert(paired(user["device"], {"app_statuses"}), Phone),
        surroundings=Surroundings(),
    )


def _banking(raw: dict[str, Any], documents: list[dict[str, str]]) -> World:
    empty: dict[str, Any] = {"data": {}, "notes": ""}
    sections = {name: raw.get(name, empty) for name in Banking.sections}
    rows: dict[str, Any] = {
        name: Table(Record, {key: recorded(row) for key, row in section["data"].items()})
        for name, section in sections.items()
    }
    pages = Table(Page, {one["id"]: Page(one["title"], one["content"]) for one in documents})
    notes = tuple((name, section["notes"]) for name, section in sections.items())
    return Banking(pages=pages, notes=notes, **rows)


def _table(row: Any, rows: Any) -> Table[Any]:
    return Table(row, msgspec.convert(rows, dict[str, row]))


DOMAINS = {
    "retail": Domain(Retail, _retail),
    "airline": Domain(Airline, _airline),
    "telecom": Domain(
        Telecom,
        _telecom,
        databases=("db.toml", "user_db.toml"),
        policies=("main_policy.md",),
        guides={"manual": "tech_support_manual.md", "workflow": "tech_support_workflow.md"},
        solo=Solo,
    ),
    "banking_knowledge": Domain(
        Banking,
        _banking,
        databases=("db.json", "documents.jsonl"),
        policies=(),
        tasks="tasks_dir.jsonl",
        splits=None,
        solo=BankingSolo,
        has_own_starts=True,
        guidance=_BANK,
    ),
}
