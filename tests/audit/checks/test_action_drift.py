"""Tests of the drift checks: one desk in which declaration, prompt and effect agree, and one that drifted."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.audit.auditor import BROKE, Report, audit
from quintain.audit.checks import action_drift
from quintain.audit.kernel.check import checks_of
from quintain.audit.kernel.loader import Subject
from tests.audit.checks._found import highest, once

SOUND = '''
class ToolError(Exception):
    pass


def tool(name, description, required=(), **properties):
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    return {"name": name, "description": description, "parameters": parameters}


TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
STATUS = {"type": "string", "enum": ["open", "closed"]}


class Desk:
    """Closing needs a reason, opening none: a demand that depends on the case is not drift."""

    def tasks(self):
        return ["close T1"]

    def tools(self):
        return [
            tool("list_tickets", "List the tickets, newest first, at most 3 results.", page={**NUMBER, "default": 1}),
            tool("get_ticket", "Show one ticket. See also `ticket_id`.", ["ticket_id"], ticket_id=TEXT),
            tool("set_status", "Set it.", ["ticket_id"], ticket_id=TEXT, status=STATUS, reason=TEXT),
            tool("target", "Hours until an answer."),
        ]

    def _target(self):
        return {"hours": 12.25}

    def reset(self, task, seed):
        self.rows = {f"T{n}": {"id": f"T{n}", "created": f"2026-01-0{n}", "status": "open"} for n in range(1, 6)}
        return "Close T1, use set_status; closing needs a reason."

    def call(self, name, arguments):
        known = {one["name"]: one["parameters"] for one in self.tools()}
        if name not in known:
            raise ToolError(f"no such tool: {name!r}")
        for key in arguments:
            if key not in known[name]["properties"]:
                raise ToolError(f"unknown parameter {key}")
        for key in known[name]["required"]:
            if key not in arguments:
                raise ToolError(f"missing parameter {key}")
        return getattr(self, "_" + name)(**arguments)

    def _list_tickets(self, page=1):
        rows = sorted(self.rows.values(), key=lambda row: row["created"], reverse=True)
        return rows[3 * page - 3 : 3 * page] if isinstance(page, int) and page > 0 else []

    def _get_ticket(self, ticket_id):
        if ticket_id not in self.rows:
            raise ToolError(f"no ticket {ticket_id!r}")
        return self.rows[ticket_id]

    def _set_status(self, ticket_id, status="open", reason=""):
        row = self._get_ticket(ticket_id)
        if status not in ("open", "closed"):
            raise ToolError(f"status must be one of open, closed, got {status!r}")
        if status == "closed" and not reason:
            raise ToolError("a reason is required to close a ticket")
        row["status"] = status
        return "done"

    def oracle(self, task):
        return [["list_tickets", {}], ["get_ticket", {"ticket_id": "T1"}], ["set_status", {
            "ticket_id": "T1", "status": "closed", "reason": "solved"}]]

    def state(self):
        return {"tickets": {key: dict(row) for key, row in self.rows.items()}}

    def score(self):
        return float(self.rows["T1"]["status"] == "closed")

    def production(self):
        return {"tools": Desk.tools(self), "calls": [["get_ticket", {"ticket_id": "T2"}, {
            "id": "T2", "created": "2025-07-01", "status": "closed"}], ["target", {}, {"hours": 12.25}]]}
'''

DRIFTED = """
class Drifted(Desk):
    used = False

    def tools(self):
        listed = [
            tool("list_tickets", "List the tickets, newest first, at most 3 results.", page={**NUMBER, "default": 2}),
            tool("get_ticket", "Show one ticket, as find_ticket(ticket_id) did.", ["ticket_id"], ticket_id=TEXT),
            tool("set_status", "Set it.", ["ticket_id"], ticket_id=TEXT,
                 status={"type": "string", "enum": ["open", "closed", "paused"]}, reason=TEXT),
            tool("merge_tickets", "Merge two.", ["ticket_id"], ticket_id=TEXT),
        ]
        listed.append(tool("target", "Hours until an answer."))
        return listed[:3] if self.used else listed

    def _target(self):
        return {"hours": 735}

    def call(self, name, arguments):
        if name == "wipe":
            return {"wiped": True}
        if name == "merge_tickets":
            raise ToolError("no such tool: 'merge_tickets'")
        if name == "set_status":
            self.used = True
            if "status" not in arguments:
                raise ToolError("missing parameter status")
        return super().call(name, arguments)

    def _list_tickets(self, page=1):
        return sorted(self.rows.values(), key=lambda row: row["created"])[: 5 if page == 1 else 2]

    def _get_ticket(self, ticket_id):
        row = super()._get_ticket(ticket_id)
        return row if self.used else {"ticket": row}

    def _set_status(self, ticket_id, status="open", reason=""):
        self.rows[ticket_id]["status"] = status
        if status not in ("open", "closed"):
            raise ToolError(f"status must be one of open, closed, got {status!r}")
        return "done"
"""


@pytest.fixture(scope="module")
def subjects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _desk(tmp_path_factory.mktemp("drift"))


def _desk(folder: Path) -> Path:
    path = folder / "desk.py"
    path.write_text(f"{SOUND}\n{DRIFTED}")
    return path


def audited(spec: str) -> Report:
    report = audit(Subject(spec), checks_of(action_drift))
    assert not [one for one in report.checks if one.reason.startswith(BROKE)]
    return report


def test_a_desk_that_does_what_it_says_is_silent(subjects: Path) -> None:
    report = audited(f"{subjects}:Desk")
    assert report.findings == ()
    unasked = {
        "x.called_off", "x.contracts_hold", "x.counted_alike", "x.sums_are_right", "x.texts_are_no_patterns",
    }  # fmt: skip
    assert {one.check for one in report.checks if one.status != "checked"} == unasked


@pytest.fixture(scope="module")
def drifted(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return once(tmp_path_factory, "drifted", lambda folder: audited(f"{_desk(folder)}:Drifted"))


@pytest.mark.parametrize(
    "title",
    [
        "set_status demands status, which its schema calls optional",
        "set_status refuses status='paused', which its schema offers",
        "list_tickets without page does not do what its declared default 2 does",
        "merge_tickets is advertised, but does not exist",
        "wipe can be called, but is not advertised",
        "the advertised tools change while an episode runs",
        "list_tickets promises descending order, but its rows are not so by created",
        "the description of get_ticket mentions find_ticket, which does not exist",
        "tool merge_tickets is not as in production",
        "enum of status of set_status is not as in production",
        "default of page of list_tickets is not as in production",
        "get_ticket answers in another form than production",
        "target gives hours turned round, or in another unit than production",
    ],
)
def test_each_drift_is_proven(drifted: Report, title: str) -> None:
    (finding,) = [one for one in drifted.findings if one.title == title]
    assert (finding.class_, finding.confidence) == ("action_drift", highest(finding))
    assert len([line for line in finding.trajectory if line["do"] == "call"]) <= 3


def test_drifted_subject_has_no_further_findings(drifted: Report) -> None:
    assert len(drifted.findings) == 13, [one.title for one in drifted.findings]
