"""Tests of declared contracts: a sound help desk that declares all, and desks that break one declaration each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from quintain.audit.checks import _drift_rows, _drift_told
from quintain.audit.checks._drift_rows import contracts_hold, is_unordered
from quintain.audit.checks._reward_runs import solve
from quintain.audit.checks._same_scripts import seems_to_read
from quintain.audit.facts.acts import does_write, only_reads, reads_by_name
from quintain.audit.facts.contracts import covers, is_named, touches
from quintain.audit.kernel.adapter import SubjectAdapter
from quintain.audit.kernel.check import check, checks_of
from quintain.audit.kernel.context import AuditContext
from quintain.audit.kernel.finding import Finding
from quintain.audit.kernel.probe import call
from quintain.contract import Contract
from quintain.errors import UsageError
from tests.audit.checks._found import audited, found

CHECKS = [*checks_of(_drift_rows), *checks_of(_drift_told)]

DESK = '''
import copy


class ToolError(Exception):
    pass


TEXT = {"type": "string", "maxLength": 60}
STATUS = {"type": "string", "enum": ["open", "held", "closed"]}


def tool(name, optional=(), **properties):
    required = [key for key in properties if key not in optional]
    parameters = {"type": "object", "properties": properties, "required": required}
    return {"name": name, "description": name.replace("_", " "), "parameters": parameters}


class Desk:
    """Declares the truth about each tool."""

    tool_contracts = {
        "search": {
            "reads": ("tickets",), "writes": (), "order": "created desc, id",
            "filters": {"status": "tickets.status", "label": "tickets.labels"},
        },
        "queue": {"writes": (), "filters": ("mine", "status")},
        "fetch_next": {"reads": ("tickets",), "writes": ("tickets.status",)},
        "fees_of": {"reads": ("fees",), "writes": (), "unit": {"amount": "cents"}},
        "touch": {"writes": ("tickets.status", "notes")},
        "charge": {"writes": ("fees",), "unit": {"amount": "cents"}},
    }

    def tasks(self):
        return ["T101", "T103", "T106"]

    def tools(self):
        return [
            tool("search", ("status", "label"), status=STATUS, label=TEXT),
            tool("queue", ("mine", "status"), mine={"type": "boolean"}, status=STATUS),
            tool("fetch_next", status=STATUS),
            tool("fees_of", ticket=TEXT),
            tool("touch", ticket=TEXT, status=STATUS),
            tool("charge", ticket=TEXT, amount={"type": "integer", "minimum": 1, "maximum": 900}),
        ]

    def reset(self, task, seed):
        self.task, self.calls = task, 0
        self.tickets = [
            {"id": f"T{100 + n}", "status": ("open", "held", "closed")[n % 3], "created": (n * 5) % 7,
             "labels": [("web", "app")[n % 2], ("new", "", "old")[n // 4]]}
            for n in range(1, 11)
        ]
        self.notes, self.fees = [], [{"id": f"F{n}", "ticket": f"T{100 + n}", "amount": 5 * n} for n in range(1, 5)]
        return f"Close {task} and charge 7 cents for it."

    def call(self, name, arguments):
        self.calls += 1
        properties = next(one["parameters"]["properties"] for one in self.tools() if one["name"] == name)
        for key, value in arguments.items():
            if value not in properties[key].get("enum", [value]):
                raise ToolError(f"{key} is not one of those that there are")
        return getattr(self, "_" + name)(**arguments)

    def ticket(self, key):
        rows = [one for one in self.tickets if one["id"] == key]
        if not rows:
            raise ToolError(f"no such ticket: {key}")
        return rows[0]

    def _search(self, status=None, label=None):
        rows = [
            one for one in self.tickets
            if status in (None, one["status"]) and (not label or label in one["labels"])
        ]
        rows.sort(key=lambda one: (-one["created"], one["id"]))
        return [{"id": one["id"]} for one in rows][:8]

    def _queue(self, mine=False, status=None):
        rows = [one for one in self.tickets if status in (None, one["status"])]
        return [one["id"] for one in rows if not mine or one["created"] > 3]

    def _fetch_next(self, status):
        rows = [one for one in self.tickets if one["status"] == status]
        if not rows:
            raise ToolError("no such ticket")
        rows[0]["status"] = "held"
        return rows[0]["id"]

    def _fees_of(self, ticket):
        self.ticket(ticket)
        return [dict(one) for one in self.fees if one["ticket"] == ticket]

    def _touch(self, ticket, status):
        self.ticket(ticket)["status"] = status
        self.notes.append({"id": f"N{len(self.notes)}", "ticket": ticket})
        return {"ok": True}

    def _charge(self, ticket, amount):
        self.ticket(ticket)
        self.fees.append({"id": f"F{len(self.fees) + 1}", "ticket": ticket, "amount": amount})
        return {"charged": amount}

    def score(self):
        fees = [one["amount"] for one in self.fees if one["ticket"] == self.task]
        return float(self.ticket(self.task)["status"] == "closed" and 7 in fees)

    def oracle(self, task):
        return [["fees_of", {"ticket": task}], ["touch", {"ticket": task, "status": "closed"}],
                ["charge", {"ticket": task, "amount": 7}]]

    def state(self):
        return copy.deepcopy({"tickets": self.tickets, "notes": self.notes, "fees": self.fees, "calls": self.calls})
'''

BROKEN = {
    "Writes": (
        """
class Writes(Desk):
    def _queue(self, mine=False, status=None):
        if mine:
            self.tickets[0]["created"] = 0
        return super()._queue(mine, status)
""",
        "queue declares to write nothing, and writes elsewhere",
    ),
    "Adds": (
        """
class Adds(Desk):
    def _fetch_next(self, status):
        self.notes.append({"id": f"N{len(self.notes)}", "ticket": "T101"})
        return super()._fetch_next(status)
""",
        "fetch_next declares to write tickets.status, and writes elsewhere",
    ),
    "Reads": (
        """
class Reads(Desk):
    def _fees_of(self, ticket):
        return [{**row, "is_closed": self.ticket(ticket)["status"] == "closed"} for row in super()._fees_of(ticket)]
""",
        "fees_of shows what touch changed outside of all that fees_of declares to read",
    ),
    "Shuffled": (
        """
class Shuffled(Desk):
    def _search(self, status=None, label=None):
        rows = super()._search(status, label)
        return rows[1:] + rows[:1] if status == "open" else rows
""",
        "search declares the order created desc, id, and its rows are not in it",
    ),
    "Ties": (
        """
class Ties(Desk):
    def _search(self, status=None, label=None):
        rows = super()._search(status, label)
        rows.sort(key=lambda row: (-self.ticket(row["id"])["created"], -int(row["id"][1:])))
        return rows
""",
        "search declares the order created desc, id, and its rows are not in it",
    ),
    "Outside": (
        """
class Outside(Desk):
    def _search(self, status=None, label=None):
        return super()._search(None if status == "held" else status, label)
""",
        "search shows rows that status leaves out",
    ),
    "Hides": (
        """
class Hides(Desk):
    def _search(self, status=None, label=None):
        rows = super()._search(status, label)
        return rows[1:] if label == "web" else rows
""",
        "search leaves out rows that label asks for",
    ),
    "Widens": (
        """
class Widens(Desk):
    def _queue(self, mine=None, status=None):
        rows = super()._queue(False, status)
        return rows + ["T999"] if mine is False else rows
""",
        "queue shows more rows with mine than without",
    ),
    "Units": (
        """
class Units(Desk):
    tool_contracts = Desk.tool_contracts | {"charge": {"writes": ("fees",), "unit": {"amount": "euros"}}}
""",
        "charge takes amount in euros, and counts it as cents in amount",
    ),
}

FURTHER = '''
class Dark(Desk):
    """Shows no state."""

    state = None

    def _search(self, status=None, label=None):
        rows = super()._search(status, label)
        return [{**row, "created": self.ticket(row["id"])["created"]} for row in reversed(rows)]


class Elsewhere(Desk):
    tool_contracts = {"search": {"reads": ("orders.id",)}}


class Silent(Desk):
    tool_contracts = {}
'''

NATIVE = '''
import msgspec

import quintain as qn


class Ticket(msgspec.Struct):
    status: str
    created: float


class Crm(qn.State):
    tickets: dict[str, Ticket] = {}
    seen: int = 0

    @qn.tool(writes=("tickets",))
    def open(self, status: str) -> str:
        """Open a ticket.

        Args:
            status: Its status.
        """
        self.clock.advance(1)
        key = self.new_id("T")
        self.tickets[key] = Ticket(status, self.clock.now)
        return key

    @qn.tool(reads=("tickets",), writes=())
    def count(self) -> dict[str, int]:
        """Count the tickets."""
        self.seen += SEEN
        self.clock.advance(1)
        return {"tickets": len(self.tickets)}


class World(qn.State):
    crm: Crm = msgspec.field(default_factory=Crm)
    mail: int = 0

    def deliver(self) -> None:
        self.mail += 1
        self.clock.after(HOURS * 3600, self.deliver)


@qn.reward
def opened(view: qn.EpisodeView[World]) -> float:
    return float([one.status for one in view.state.crm.tickets.values()] == ["new"])


def make() -> qn.Environment[World]:
    calls = (("crm_count", {}), ("crm_open", {"status": "new"}))
    start = World()
    start.clock.after(HOURS, start.deliver)
    task = qn.Task(id="one", prompt="Open a ticket with the status new.", start=start, solution=calls)
    return qn.Environment("desk", tasks=lambda split: [task], harness=qn.ToolLoop(), verifier=qn.Verifier(opened),
                          state=World)
'''


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("desk") / "desk.py"
    path.write_text(DESK + "".join(text for text, _ in BROKEN.values()) + FURTHER)
    return path


def titles(findings: Sequence[Finding]) -> list[str]:
    return [one.title for one in findings if one.confidence == "proven"]


def test_no_finding_when_a_world_keeps_its_contracts(file: Path) -> None:
    report = audited(file, "Desk", CHECKS)
    assert not report.findings
    (own,) = (one for one in report.checks if one.check == contracts_hold.id)
    assert own.status == "checked"
    assert own.looked > 40


FAST = {"Writes", "Shuffled"}  # The others take a second of CPU each.


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in FAST else pytest.mark.slow) for name in BROKEN]
)
def test_broken_declaration_is_proven(file: Path, name: str) -> None:
    assert titles(found(file, name, CHECKS)) == [BROKEN[name][1]]


def test_no_finding_when_nothing_is_declared(file: Path) -> None:
    (own,) = audited(file, "Silent", [contracts_hold]).checks
    assert (own.status, own.reason) == ("not_checked", "no tool has a contract")


def test_contract_is_not_checked_when_it_names_an_unknown_table(file: Path) -> None:
    (own,) = audited(file, "Elsewhere", [contracts_hold]).checks
    assert (own.status, own.reason) == ("not_checked", "a contract names orders.id, which the state does not have")


def test_order_is_proven_by_shown_fields_when_the_state_is_not_visible(file: Path) -> None:
    assert titles(found(file, "Dark", [contracts_hold])) == [BROKEN["Ties"][1]]


def test_violation_is_minimised_to_one_call(file: Path) -> None:
    (finding,) = found(file, "Adds", [contracts_hold])
    assert [op.name for op in finding.probes[0].ops if op.do == "call"] == ["fetch_next"]
    assert finding.observed == ["notes"]


@pytest.mark.parametrize(
    ("seen", "hours"),
    [pytest.param(0, 0.5, marks=pytest.mark.slow), (0, 99), pytest.param(1, 99, marks=pytest.mark.slow)],
)
def test_contract_of_an_environment_excuses_its_clock_timers_and_ids(tmp_path: Path, seen: int, hours: float) -> None:
    file = tmp_path / "native.py"
    file.write_text(NATIVE.replace("SEEN", str(seen)).replace("HOURS", str(hours)))
    report = audited(file, "make", [contracts_hold])
    assert titles(report.findings) == ["crm_count declares to write nothing, and writes elsewhere"][:seen]
    assert report.checks[0].looked > 3


# --- inference ---


def test_declarations_replace_inference(file: Path) -> None:
    contexts: list[AuditContext] = []

    @check("x.taken", "action_drift")
    def taken(ctx: AuditContext) -> Sequence[Finding]:
        """Takes what is known of the subject."""
        contexts.append(ctx)
        assert ctx.discovery.background == {"calls"}
        assert set(ctx.discovery.writers) == {"fetch_next", "touch", "charge"}
        assert {one.op.name for one in ctx.discovery.reads()} == {"search", "queue", "fees_of"}
        assert reads_by_name(call("fetch_next"))
        assert not only_reads(ctx, call("fetch_next"))
        assert does_write(ctx, call("fetch_next"))
        assert not seems_to_read(ctx, "fetch_next")
        assert not does_write(ctx, call("queue"))
        (solution,) = solve(ctx, ctx.tasks[:1])
        assert solution.writes == (1, 2)
        return ()

    audited(file, "Desk", [taken])
    assert contexts


# --- parts ---


@pytest.mark.parametrize(
    ("name", "path", "is_covered", "is_touched"),
    [
        ("tickets", "tickets/7/status", True, True),
        ("tickets", "tickets", True, True),
        ("tickets", "tickets_old/7", False, False),
        ("crm", "crm.tickets/7/status", True, True),
        ("crm.tickets.status", "crm.tickets/7/status", True, True),
        ("crm.tickets.status", "crm.tickets/7/note", False, False),
        ("crm.tickets.status", "crm.tickets/7", False, True),
        ("pages.title", "pages/en/home/title", True, True),
        ("tickets.address.city", "tickets/7/address/city", True, True),
        ("tickets.address.city", "tickets/7/address", False, True),
        ("tickets.address.city", "tickets/7/address/street", False, False),
        ("tickets.address", "tickets/7/address/street", True, True),
        ("profile.name", "profile/name", True, True),
    ],
)
def test_name_covers_and_touches_paths(name: str, path: str, is_covered: bool, is_touched: bool) -> None:
    assert (covers(name, path), touches(name, path)) == (is_covered, is_touched)


def test_name_stands_for_tables_of_its_part() -> None:
    assert is_named("crm.tickets", ["crm"])
    assert is_named("crm.tickets", ["notes", "crm.tickets.status"])
    assert not is_named("crm.tickets", ["crm.tick"])


@pytest.mark.parametrize(
    ("values", "order", "is_broken"),
    [
        ([3, 2, 2, 1], "n desc", False),
        ([3, 1, 2], "n desc", True),
        ([1, None, 0], "n", False),
        ([1, "a"], "n", False),
        (["b", "A"], "n asc", True),
        (["a", "B"], "n", False),
        (["B", "a"], "n", False),
        (["T9", "T10"], "n", False),
        (["T10", "T9"], "n", False),
        (["T10", "T9", "T8"], "n desc", False),
        (["2024-05-01", "2024-04-30"], "n", True),
        (["2 May", "1 May"], "n", False),
        (["z", "é"], "n", False),
    ],
)
def test_order_is_broken_only_by_values_that_compare(values: Sequence[Any], order: str, is_broken: bool) -> None:
    assert is_unordered([{"n": value} for value in values], {}, order) == is_broken


class Plain:
    tool_contracts: Any = {"look": {"writes": []}}

    def tasks(self) -> list[str]:
        return ["t"]

    def tools(self) -> list[Any]:
        return [{"name": "look", "parameters": {"type": "object", "properties": {"status": {"type": "string"}}}}]

    def reset(self, task: str, seed: int) -> None: ...

    def score(self) -> float:
        return 1.0


def test_contracts_are_read_from_an_attribute() -> None:
    assert SubjectAdapter(Plain()).contracts() == {"look": Contract(writes=())}


@pytest.mark.parametrize(
    ("contracts", "message"),
    [
        ({"look": {"write": []}}, "tool_contracts of Plain: Object contains unknown field `write` - at `$[...]`"),
        ({"look": {"writes": "tickets"}}, "tool_contracts of Plain: Expected `array | null`, got `str`"),
        ({"lok": {}}, "tool_contracts of Plain has 'lok'; the tools are ['look']"),
        ({"look": {"filters": ["state"]}}, "has 'look.state'; the parameters are ['status']"),
    ],
)
def test_contracts_are_refused_when_they_are_wrong(contracts: Any, message: str) -> None:
    subject = Plain()
    subject.tool_contracts = contracts
    with pytest.raises(UsageError, match=re.escape(message)):
        SubjectAdapter(subject).contracts()
