"""Records of the bank, as the reference stores them: rows whose fields differ from one to the next."""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import typing
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar, TypeVar, cast

import msgspec

from quintain.adapters.tau2.convention import unfit
from quintain.adapters.tau2.record import Pairs, Verbatim, builtin
from quintain.adapters.tau2.world import World
from quintain.table import Table

F = TypeVar("F", bound=Callable[..., str])

TODAY = "11/14/2025"
NOW = "2025-11-14 03:40:00 EST"

Field = str | int | float | bool | Verbatim | None
Text = Annotated[str, msgspec.Meta(min_length=1)]
Digits = Annotated[str, msgspec.Meta(pattern=r"\A[0-9]{4}\Z")]
Cvv = Annotated[str, msgspec.Meta(pattern=r"\A[0-9]{3}\Z")]
Positive = Annotated[float, msgspec.Meta(gt=0)]
Whole = Annotated[float, msgspec.Meta(gt=0, multiple_of=1)]


class Refused(Exception):
    """A call that changes nothing; the caller reads the message, which the reference does not flag as an error."""


class Record(msgspec.Struct, frozen=True):
    """One row; fields keep the order in which they were added."""

    fields: Pairs[Field]


def recorded(row: Mapping[str, Any]) -> Record:
    """Returns a row from plain data."""
    return Record(
        tuple(
            (name, value if value is None or isinstance(value, str | int | float) else Verbatim(json.dumps(value)))
            for name, value in row.items()
        )
    )


def identify(*parts: object, digits: int = 12) -> str:
    """Returns the identifier that the reference derives from the parts."""
    return hashlib.sha256(":".join(map(str, parts)).encode()).hexdigest()[:digits]


def dollars(amount: object) -> float:
    """Returns an amount, a number or such as "$1,200.50", as a number."""
    return float(str(amount).replace("$", "").replace(",", ""))


def days_open(account: Mapping[str, Any]) -> int | None:
    """Returns the age of an account; None if its row doesn't tell."""
    try:
        return (_day(TODAY) - _day(account.get("date_opened", ""))).days
    except ValueError:
        return None


def _day(date: str) -> datetime:
    return datetime.strptime(date, "%m/%d/%Y")  # noqa: DTZ007 (the bank's days have no zone)


def hidden(method: F) -> F:
    """Marks a tool that the agent can call once it knows its name from a document."""
    method.is_hidden = "agent"  # type: ignore[attr-defined]
    return method


def lookup(method: F) -> F:
    """Marks a hidden tool that changes nothing; a call is recorded only if the task's solution makes it too."""
    method.is_lookup = True  # type: ignore[attr-defined]
    return hidden(method)


def lent(method: F) -> F:
    """Marks a tool that the customer can call once the agent has given it."""
    method.is_hidden = "user"  # type: ignore[attr-defined]
    return method


class Records(World, kw_only=True):
    """All sections of the bank's database."""

    toolkit: ClassVar[str] = "KnowledgeTools"
    user_toolkit: ClassVar[str] = "KnowledgeUserTools"
    has_one_database: ClassVar[bool] = True
    foresees: ClassVar[bool] = True
    users: Table[Record]
    accounts: Table[Record]
    debit_cards: Table[Record]
    referrals: Table[Record]
    credit_card_applications: Table[Record]
    verification_history: Table[Record]
    credit_card_transaction_history: Table[Record]
    cash_back_disputes: Table[Record]
    bank_account_transaction_history: Table[Record]
    credit_card_accounts: Table[Record]
    transaction_disputes: Table[Record]
    credit_card_orders: Table[Record]
    debit_card_orders: Table[Record]
    credit_card_closure_reasons: Table[Record]
    credit_card_account_flags: Table[Record]
    credit_limit_increase_requests: Table[Record]
    payment_history: Table[Record]
    debit_card_disputes: Table[Record]
    task_config: Table[Record]
    agent_discoverable_tools: Table[Record]
    user_discoverable_tools: Table[Record]
    user_discoverable_tool_calls: Table[Record]
    human_transfer_requests: Table[Record]
    notes: Pairs[str]
    """Descriptions of the sections; part of the digest."""
    unlocked: list[str] = []
    """Hidden tools that the agent may call."""
    foreseen: list[str] = []
    """Hidden tools that the solution of the task calls."""

    def document(self, section: str, key: str) -> Any:
        """Returns one row as plain data; None if it does not exist."""
        row = self._table(section).get(key)
        return None if row is None else builtin(row.fields)

    def laid_out(self, section: str, rows: dict[str, str]) -> str:
        """JSON of a section: its rows, and its note."""
        return f'{{"data": {super().laid_out(section, rows)}, "notes": {json.dumps(dict(self.notes)[section])}}}'

    def adopt(self, changes: Mapping[str, Any]) -> None:
        """Adds the rows with which a task begins; rows of the same key are replaced."""
        for section, content in changes.items():
            self._table(section).update({key: recorded(row) for key, row in content["data"].items()})

    def foresee(self, calls: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        """Notes which hidden tools the solution calls."""
        self.foreseen = [
            arguments["agent_tool_name"] for name, arguments in calls if name == "call_discoverable_agent_tool"
        ]

    def row(self, section: str, key: str, refusal: str) -> dict[str, Any]:
        """Returns one row.

        Raises:
            Refused: The row does not exist; the message is `refusal`.
        """
        found: dict[str, Any] | None = self.document(section, key)
        if found is None:
            raise Refused(refusal)
        return found

    def matching(self, section: str, **wanted: object) -> dict[str, dict[str, Any]]:
        """Returns the rows that have these values."""
        rows = {key: self.document(section, key) for key in self.keys(section)}
        return {key: row for key, row in rows.items() if all(row.get(name) == wanted[name] for name in wanted)}

    def listed(self, section: str, **wanted: object) -> str:
        """Returns the rows that have these values, as the model reads them."""
        return self.shown(section, self.matching(section, **wanted))

    def shown(self, section: str, rows: Mapping[str, Mapping[str, Any]]) -> str:
        """Returns rows of a section as the model reads them."""
        if not rows:
            return f"No records found in '{section}'."
        texts = [
            f"{number}. Record ID: {key}\n" + "".join(f"   {name}: {value}\n" for name, value in row.items())
            for number, (key, row) in enumerate(rows.items(), 1)
        ]
        return "\n".join([f"Found {len(rows)} record(s) in '{section}':\n", *texts])

    def add(self, section: str, key: str, row: Mapping[str, Any], *, refusal: str = "") -> None:
        """Adds a row; leaves the one that has its key where there is no `refusal`.

        Raises:
            Refused: The key is taken; the message is `refusal`.
        """
        if key not in self._table(section):
            self._table(section)[key] = recorded(row)
        elif refusal:
            raise Refused(refusal)

    def change(self, section: str, key: str, **fields: Any) -> None:
        """Sets fields of a row that exists."""
        self._table(section)[key] = recorded(self.document(section, key) | fields)

    def bound(self, name: str, arguments: str) -> dict[str, Any]:
        """Returns the arguments of a hidden tool; their values are not checked yet.

        Raises:
            Refused: They are not a JSON object, or the tool does not have them.
        """
        method, given = getattr(self, name), parsed(arguments)
        if complaint := unfit(inspect.signature(method).parameters, given):
            toolkit = self.toolkit if method.is_hidden == "agent" else self.user_toolkit
            raise Refused(f"Error: Invalid arguments: {toolkit}.{name}() {complaint}")
        return given

    def invoke(self, name: str, given: dict[str, Any]) -> str:
        """Calls a hidden tool with bound arguments.

        Raises:
            Refused: A value does not fit, or the tool refuses the call.
        """
        try:
            fit = msgspec.convert(given, form(getattr(type(self), name)))
        except msgspec.ValidationError as error:
            raise Refused(f"Error: Invalid arguments: {error}") from error
        return str(getattr(self, name)(**{parameter: getattr(fit, parameter) for parameter in given}))

    def hidden_tool(self, name: str, role: str) -> Any:
        """Returns the hidden tool of this name; None if the role has none."""
        method = getattr(self, name, None)
        return method if getattr(method, "is_hidden", None) == role else None

    def _table(self, section: str) -> Table[Record]:
        table: Table[Record] = getattr(self, section)
        return table


Records.sections = tuple(name for name, type_ in Records.__annotations__.items() if type_ == "Table[Record]")


@functools.cache
def form(method: Callable[..., str]) -> type[msgspec.Struct]:
    """Returns the type of a hidden tool's arguments."""
    hints = typing.get_type_hints(method, include_extras=True)
    defaults = {one.name: one.default for one in inspect.signature(method).parameters.values()}
    fields = [
        (name, hint) if defaults[name] is inspect.Parameter.empty else (name, hint, defaults[name])
        for name, hint in hints.items()
        if name in defaults
    ]
    return msgspec.defstruct(method.__name__, fields, kw_only=True)


def parsed(arguments: str) -> dict[str, Any]:
    """Returns a JSON object's text as a mapping, in which all numbers are floats.

    Raises:
        Refused: The text does not hold one.
    """
    try:
        given = json.loads(arguments, parse_int=float)
    except ValueError as error:
        raise Refused(f"Error: Invalid JSON in arguments: {error}") from error
    if not isinstance(given, dict):
        raise Refused(f"Error: Invalid arguments: a JSON object is expected, got {type(given).__name__}")
    return cast("dict[str, Any]", given)
