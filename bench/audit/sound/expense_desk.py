"""Expense desk: three roles, reports that need one or two approvals, and a log that only grows."""

from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

import quintain as qn
from quintain.state import Rng
from quintain.task import Call

LIMIT_CENTS, PAGE = 50_000, 5
Role = Literal["clerk", "manager", "finance"]
Status = Literal["draft", "submitted", "checked", "approved", "rejected"]
Category = Literal["travel", "meal", "gift", "office"]
Text = Annotated[str, Meta(min_length=1, max_length=60)]
STAFF = ("Abebe", "Brandt", "Castro", "Dube")


class Line(msgspec.Struct, order=True):
    category: Category
    cents: int
    text: str


class Report(msgspec.Struct):
    owner: str
    title: str
    status: Status = "draft"
    lines: list[Line] = []
    reason: str = ""

    def total(self) -> int:
        return sum(line.cents for line in self.lines)


class Desk(qn.State):
    reports: qn.Table[Report]
    role: Role = "clerk"
    log: list[str] = []

    @qn.tool
    def act_as(self, role: Role) -> str:
        """Change your role. Clerks write and submit reports, managers and finance approve or reject them.

        Args:
            role: The role from now on; at the beginning it is clerk.
        """
        self.role = role
        return f"you act as {role}"

    @qn.tool
    def list_reports(
        self, status: Status | None = None, page: Annotated[int, Meta(ge=1, le=100)] = 1
    ) -> dict[str, object]:
        """List reports in the order in which they were made, five on a page, with totals in cents.

        Args:
            status: Only reports in this status; all if left out.
            page: Number of the page, from 1.
        """
        found = [(key, one) for key, one in self.reports.items() if status in {None, one.status}]
        pages = max(1, -(-len(found) // PAGE))
        if page > pages:
            raise qn.ToolError(f"page {page} does not exist; pages: 1 to {pages}")
        rows = [
            {"id": key, "owner": one.owner, "title": one.title, "status": one.status, "total_cents": one.total()}
            for key, one in found[(page - 1) * PAGE : page * PAGE]
        ]
        return {"total": len(found), "pages": pages, "reports": rows}

    @qn.tool
    def read_report(self, report: str) -> Report:
        """Read a report with its lines, which are numbered from 1.

        Args:
            report: Id of the report.
        """
        return self._report(report)

    @qn.tool
    def create_report(self, owner: str, title: Text) -> str:
        """Create an empty draft; returns its id. Only for clerks.

        Args:
            owner: Abebe, Brandt, Castro or Dube.
            title: Title, at most 60 characters.
        """
        self._only("clerk")
        if owner not in STAFF:
            raise qn.ToolError(f"{owner!r} does not work here; staff: {', '.join(STAFF)}")
        key = self.new_id("E")
        self._save(key, Report(owner, title), "created")
        return key

    @qn.tool
    def add_line(
        self, report: str, category: Category, cents: Annotated[int, Meta(ge=1, le=1_000_000)], text: Text
    ) -> str:
        """Add a line to a draft. Only for clerks.

        Args:
            report: Id of the draft.
            category: Kind of cost.
            cents: Amount in cents, at most 1,000,000.
            text: What was bought, at most 60 characters.
        """
        row = self._in(report, "draft", role="clerk")
        if len(row.lines) == 20:
            raise qn.ToolError(f"{report} has 20 lines; more are not allowed")
        row.lines.append(Line(category, cents, text))
        return self._save(report, row, "changed")

    @qn.tool
    def remove_line(self, report: str, number: Annotated[int, Meta(ge=1, le=20)]) -> str:
        """Remove a line of a draft; later lines move up. Only for clerks.

        Args:
            report: Id of the draft.
            number: Number of the line, from 1.
        """
        row = self._in(report, "draft", role="clerk")
        if number > len(row.lines):
            raise qn.ToolError(f"{report} has {len(row.lines)} lines, so line {number} does not exist")
        del row.lines[number - 1]
        return self._save(report, row, "changed")

    @qn.tool
    def submit(self, report: str) -> str:
        """Submit a draft that has at least one line. Only for clerks.

        Args:
            report: Id of the draft.
        """
        row = self._in(report, "draft", role="clerk")
        if not row.lines:
            raise qn.ToolError(f"{report} has no lines; `add_line` first")
        row.status = "submitted"
        return self._save(report, row, "submitted")

    @qn.tool
    def withdraw(self, report: str) -> str:
        """Make a submitted report a draft again. Only for clerks.

        Args:
            report: Id of the report.
        """
        row = self._in(report, "submitted", role="clerk")
        row.status = "draft"
        return self._save(report, row, "withdrawn")

    @qn.tool
    def approve(self, report: str) -> str:
        """Approve a report. A manager approves first; above 500.00 EUR finance must approve as well.

        A submitted report up to 500.00 EUR is approved by the manager alone. Above that, the manager's approval makes
        it checked, and finance approves checked reports.

        Args:
            report: Id of the report.
        """
        row = self._decided(report)
        row.status = "approved" if self.role == "finance" or row.total() <= LIMIT_CENTS else "checked"
        return self._save(report, row, row.status)

    @qn.tool
    def reject(self, report: str, reason: Text) -> str:
        """Reject a report: as manager a submitted one, as finance a checked one.

        Args:
            report: Id of the report.
            reason: Reason, at most 60 characters.
        """
        row = self._decided(report)
        row.status, row.reason = "rejected", reason
        return self._save(report, row, "rejected")

    @qn.tool
    def read_log(self) -> list[str]:
        """Read the newest ten lines of the log, the oldest first; the log keeps every accepted change of a report."""
        return self.log[-10:]

    def _only(self, role: Role) -> None:
        if self.role != role:
            raise qn.ToolError(f"only the role {role} may do this, and you act as {self.role}; see `act_as`")

    def _report(self, key: str) -> Report:
        if key not in self.reports:
            raise qn.ToolError(f"no report {key!r}; `list_reports` shows the ids")
        return self.reports[key]

    def _in(self, key: str, status: Status, *, role: Role) -> Report:
        self._only(role)
        row = self._report(key)
        if row.status != status:
            raise qn.ToolError(f"{key} is {row.status}; it must be {status}")
        return row

    def _decided(self, key: str) -> Report:
        if self.role == "clerk":
            raise qn.ToolError("only the roles manager and finance may do this, and you act as clerk; see `act_as`")
        return self._in(key, "submitted" if self.role == "manager" else "checked", role=self.role)

    def _save(self, key: str, row: Report, verb: str) -> str:
        self.reports[key] = row
        self.log.append(f"{len(self.log) + 1}. {self.role}: {key} {verb}")
        return f"{key} is {row.status}, {len(row.lines)} lines, {row.total()} cents"


def content(reports: Iterable[Report]) -> list[dict[str, Any]]:
    """Returns the reports as plain data, without ids and without the order of lines."""
    rows = [Report(one.owner, one.title, one.status, sorted(one.lines), one.reason) for one in reports]
    return sorted((msgspec.to_builtins(row) for row in rows), key=lambda row: row["title"])


def start(rng: Rng) -> Desk:
    """Returns a desk with eight reports; E2, E4 and E6 are above the limit whatever is drawn, E8 is a draft."""
    desk = Desk(reports=qn.Table(Report))
    categories: tuple[Category, ...] = ("travel", "meal", "office")
    for n, title in enumerate(("Fair", "Trial", "Workshop", "Client visit", "Move", "Training", "Audit", "Launch")):
        cents = [rng.choice((4_050, 9_900, 12_000)) for _ in range(2)] + [45_000 if n % 2 else 2_000]
        lines = [Line(rng.choice(categories), amount, f"item {place + 1}") for place, amount in enumerate(cents)]
        lines += [Line("gift", 2_500, "gift")] if n in {2, 5} else []
        name = f"{title} {100 + rng.below(900)}"
        desk.reports[desk.new_id("E")] = Report(STAFF[n % 4], name, "draft" if n == 7 else "submitted", lines)
    return desk


def large(desk: Desk, rng: Rng) -> tuple[str, list[Call]]:
    key = rng.choice(("E2", "E4"))
    approve: Call = ("approve", {"report": key})
    wish = f"Approve the report '{desk.reports[key].title}' with all approvals that it needs."
    return wish, [("act_as", {"role": "manager"}), approve, ("act_as", {"role": "finance"}), approve]


def written(desk: Desk, rng: Rng) -> tuple[str, list[Call]]:
    owner, title, key = rng.choice(STAFF), f"Stand {1000 + rng.below(9000)}", f"E{len(desk.reports) + 1}"
    taxi, lunch = 1_000 + rng.below(4_000), 1_000 + rng.below(4_000)
    wish = (
        f"Write a report for {owner} with the title '{title}' and submit it: travel, 'taxi', {taxi} cents; meal, "
        f"'lunch', {lunch} cents."
    )
    return wish, [
        ("create_report", {"owner": owner, "title": title}),
        ("add_line", {"report": key, "category": "travel", "cents": taxi, "text": "taxi"}),
        ("add_line", {"report": key, "category": "meal", "cents": lunch, "text": "lunch"}),
        ("submit", {"report": key}),
    ]


def gifts(desk: Desk, rng: Rng) -> tuple[str, list[Call]]:
    reason = f"gift rule {1000 + rng.below(9000)}"
    found = [key for key, one in desk.reports.items() if any(line.category == "gift" for line in one.lines)]
    rejects: list[Call] = [("reject", {"report": key, "reason": reason}) for key in found]
    wish = f"Reject every submitted report that has a line of the category gift, with the reason '{reason}'."
    return wish, [("act_as", {"role": "manager"}), *rejects]


FAMILIES: tuple[Callable[[Desk, Rng], tuple[str, list[Call]]], ...] = (large, written, gifts)


def make(split: str, number: int) -> qn.Task[Desk]:
    rng = Rng(key=f"expense_desk/{split}/{number}".encode())
    desk = start(rng)
    wish, calls = FAMILIES[number % 3](desk, rng)
    later = desk.copy()
    for name, arguments in calls:
        getattr(later, name)(**arguments)
    return qn.Task(
        id=f"{split}-{number}",
        prompt=f"{wish} Change no other report. Your role at the end does not matter.",
        start=desk,
        truth=content(later.reports.values()),
        solution=(("list_reports", {}), *calls),
    )


@qn.reward
def reports_are_right(view: qn.EpisodeView[Desk]) -> qn.Score:
    found, wanted = content(view.state.reports.values()), view.task.truth
    wrong = sorted({row["title"] for row in [*found, *wanted] if row not in found or row not in wanted})
    return qn.Score(float(found == wanted), f"reports that differ: {wrong}")


env = qn.Environment(
    "expense_desk",
    tasks=lambda split: qn.Tasks(12, lambda number: make(split, number)),
    harness=qn.ToolLoop(),
    verifier=qn.Verifier(reports_are_right),
    state=Desk,
)
