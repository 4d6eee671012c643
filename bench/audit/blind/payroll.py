"""Payroll desk: tickets of employees, corrections of payslips, and totals of a month."""

from __future__ import annotations

import hashlib
import uuid
from typing import Annotated, Any, Literal

import msgspec

import quintain as qn
from quintain.state import Rng

MONTHS = ("2025-12", "2026-01", "2026-02")
CLOSED: tuple[str, ...] = ("2025-12",)
TAX_PCT = 22
FIRST = ("Mara", "Nils", "Olga", "Pavel", "Rosa", "Stig", "Tilda", "Uwe", "Vera", "Wim")
LAST = ("Holm", "Vogel", "Santos", "Okoye", "Larsen", "Weiss", "Conti")
Kind = Literal["overtime", "bonus", "deduction"]
Cents = Annotated[int, msgspec.Meta(ge=1, le=2_000_000)]


class Employee(msgspec.Struct):
    id: str
    name: str
    salary: int  # cents per month


class Payslip(msgspec.Struct):
    id: str
    employee: str
    month: str
    gross: int
    tax: int | None  # null until the tax run of the month
    is_closed: bool


class Ticket(msgspec.Struct):
    id: str
    text: str
    status: Literal["open", "closed"] = "open"
    audited: int = 0  # amount that the auditors found; not for the desk


class Correction(msgspec.Struct):
    id: str
    payslip: str
    kind: Kind
    cents: int
    ticket: str
    status: Literal["proposed", "approved", "withdrawn"] = "proposed"


class Payroll(qn.State):
    employees: dict[str, Employee]
    payslips: dict[str, Payslip]
    tickets: dict[str, Ticket]
    corrections: dict[str, Correction] = {}
    sums: dict[str, dict[str, int]] = {}  # totals by month, because a month has many payslips in production

    @qn.tool
    def ticket(self, ticket: str) -> dict[str, str]:
        """Show a ticket.

        Args:
            ticket: Its id, such as "T2".
        """
        row = self._ticket(ticket)
        return {"id": row.id, "text": row.text, "status": row.status}

    @qn.tool
    def find_employee(self, name: str) -> list[Employee]:
        """Find employees by a part of their name. Salaries are in cents per month.

        Args:
            name: Part of the name; case does not matter.
        """
        return [one for one in self.employees.values() if name.casefold() in one.name.casefold()]

    @qn.tool
    def list_payslips(self, employee: str) -> list[Payslip]:
        """List the payslips of an employee. The tax is null until the tax run of the month.

        Args:
            employee: Id of the employee, such as "E4".
        """
        return [one for one in self.payslips.values() if one.employee == employee]

    @qn.tool
    def list_corrections(self, ticket: str) -> list[Correction]:
        """List the corrections that were made for a ticket.

        Args:
            ticket: Id of the ticket.
        """
        return [one for one in self.corrections.values() if one.ticket == self._ticket(ticket).id]

    @qn.tool
    def propose(self, payslip: str, kind: Kind, cents: Cents, ticket: str) -> Correction:
        """Propose a correction of a payslip of a month that is not closed.

        Args:
            payslip: Id of the payslip.
            kind: Overtime and a bonus raise the gross pay, a deduction lowers it.
            cents: The amount in cents, without a sign.
            ticket: Id of the ticket that asks for it.
        """
        if payslip not in self.payslips or self.payslips[payslip].is_closed:
            raise qn.ToolError(f"no payslip {payslip!r} of a month that is not closed")
        self._check_amount(self._ticket(ticket), cents)
        made = Correction(self._number(), payslip, kind, cents, ticket)
        self.corrections[made.id] = made
        return made

    @qn.tool
    def approve(self, correction: str) -> Payslip:
        """Approve a proposed correction, which changes the payslip. Refused if it is approved or withdrawn already.

        Args:
            correction: Id of the correction.
        """
        row = self._correction(correction)
        self._check_proposed(row)
        slip = self.payslips[row.payslip]
        slip.gross += -row.cents if row.kind == "deduction" else row.cents
        slip.tax = None if slip.tax is None else tax(slip.gross)
        row.status = "approved"
        self._forget(slip.month)
        return slip

    @qn.tool
    def withdraw(self, correction: str) -> str:
        """Withdraw a proposed correction.

        Args:
            correction: Id of the correction.
        """
        row = self._correction(correction)
        if row.status != "proposed":
            raise qn.ToolError(f"{correction} is {row.status}")
        row.status = "withdrawn"
        return f"{correction} is withdrawn"

    @qn.tool
    def totals(self, month: str) -> dict[str, int]:
        """Add up gross pay, tax and net pay of a month, in cents. Refused before the tax run of the month.

        Args:
            month: The month, such as "2026-01".
        """
        if month not in MONTHS:
            raise qn.ToolError(f"no month {month!r}; there are {', '.join(MONTHS)}")
        if month not in self.sums:
            slips = [one for one in self.payslips.values() if one.month == month]
            gross, taxes = sum(one.gross for one in slips), sum(self._taxed(one) for one in slips)
            self.sums[month] = {"gross": gross, "tax": taxes, "net": gross - taxes}
        return self.sums[month]

    @qn.tool
    def close_ticket(self, ticket: str) -> str:
        """Close a ticket.

        Args:
            ticket: Id of the ticket.
        """
        self._ticket(ticket).status = "closed"
        return f"{ticket} is closed"

    def _ticket(self, ticket: str) -> Ticket:
        if ticket not in self.tickets:
            raise qn.ToolError(f"no ticket {ticket!r}")
        return self.tickets[ticket]

    def _correction(self, correction: str) -> Correction:
        if correction not in self.corrections:
            raise qn.ToolError(f"no correction {correction!r}")
        return self.corrections[correction]

    def _number(self) -> str:
        return self.new_id("C")

    def _check_amount(self, ticket: Ticket, cents: int) -> None:
        if ticket.status == "closed":
            raise qn.ToolError(f"{ticket.id} is closed")

    def _check_proposed(self, row: Correction) -> None:
        if row.status != "proposed":
            raise qn.ToolError(f"{row.id} is {row.status}")

    def _taxed(self, slip: Payslip) -> int:
        if slip.tax is None:
            raise qn.ToolError(f"the tax run of {slip.month} is still to come")
        return slip.tax

    def _forget(self, month: str) -> None:
        self.sums.pop(month, None)


def tax(gross: int) -> int:
    return (gross * TAX_PCT + 50) // 100


def start(rng: Rng, closed: tuple[str, ...]) -> Payroll:
    """Returns a payroll of ten employees, some of whom share a family name; February has no tax run yet."""
    first = rng.sample(FIRST, 10)
    employees = {
        f"E{n}": Employee(f"E{n}", f"{name} {rng.choice(LAST)}", 100 * (2400 + rng.below(4100)))
        for n, name in enumerate(first, 1)
    }
    payslips: dict[str, Payslip] = {}
    for month in MONTHS:
        for one in employees.values():
            extra = 100 * rng.below(300) if rng.below(3) == 0 else 0
            gross, key = one.salary + extra, f"P{len(payslips) + 1}"
            taxed = None if month == MONTHS[-1] else tax(gross)
            payslips[key] = Payslip(key, one.id, month, gross, taxed, month in closed)
    return Payroll(employees=employees, payslips=payslips, tickets={})


def ask(world: Payroll, rng: Rng, key: str) -> tuple[Payslip, Kind, int]:
    """Writes a ticket; returns the payslip that it is about, the kind of the correction and its amount."""
    who = world.employees[rng.choice(tuple(world.employees))]
    month = rng.choice(MONTHS[1:])
    slip = next(one for one in world.payslips.values() if (one.employee, one.month) == (who.id, month))
    kind: Kind = rng.choice(("overtime", "bonus", "deduction"))
    hours, rate, pct, days = 2 + rng.below(20), 1800 + 25 * rng.below(90), 2 + rng.below(9), 1 + rng.below(5)
    if kind == "overtime":
        cents, euros = hours * rate, f"{rate // 100}.{rate % 100:02}"
        text = f"{who.name} worked {hours} hours of overtime in {month}, at {euros} euros an hour. Not on the payslip."
    elif kind == "bonus":
        cents = who.salary * pct // 100
        text = f"{who.name} was promised a bonus of {pct} percent of the monthly salary with the payslip of {month}."
    else:
        cents = who.salary * days // 20
        text = f"{who.name} took {days} days of unpaid leave in {month}. Deduct a twentieth of the salary for each day."
    world.tickets[key] = Ticket(key, text, audited=cents)
    return slip, kind, cents


def task(split: str, n: int, world: type[Payroll], *, closed: tuple[str, ...] = CLOSED) -> qn.Task[Payroll]:
    rng = Rng(key=hashlib.blake2b(f"payroll/{split}/{n}".encode(), digest_size=16).digest())
    begin = start(rng, closed)
    asked = {f"T{k}": ask(begin, rng, f"T{k}") for k in (1, 2, 3)}
    key = rng.choice(tuple(asked))
    slip, kind, cents = asked[key]
    name = begin.employees[slip.employee].name
    change = {"payslip": slip.id, "kind": kind, "cents": cents, "ticket": key}
    solution: list[tuple[str, dict[str, Any]]] = [
        ("ticket", {"ticket": key}),
        ("find_employee", {"name": name}),
        ("list_payslips", {"employee": slip.employee}),
    ]
    prompt = f"Work on ticket {key}: correct the payslip, approve the correction, and close the ticket."
    number = "C1"
    if n % 2:
        begin.corrections["D1"] = Correction("D1", slip.id, kind, cents + 100 * (1 + rng.below(90)), key)
        prompt += " A colleague proposed a wrong amount for it: withdraw that."
        solution += [("list_corrections", {"ticket": key}), ("withdraw", {"correction": "D1"})]
    solution += [("propose", change), ("approve", {"correction": number}), ("close_ticket", {"ticket": key})]
    goal = begin.copy()
    goal.payslips[slip.id].is_closed = False
    for tool, arguments in solution:
        getattr(goal, tool)(**arguments)
    goal.payslips[slip.id].is_closed = begin.payslips[slip.id].is_closed
    fields = {one: getattr(begin, one) for one in ("employees", "payslips", "tickets", "corrections")}
    truth = {**summary(goal), "ticket": key}
    return qn.Task(id=f"{split}-{n}", prompt=prompt, start=world(**fields), truth=truth, solution=tuple(solution))


def summary(world: Payroll) -> dict[str, Any]:
    """Returns what the verifier compares, without the ids of corrections."""
    rows = [[one.payslip, one.kind, one.cents, one.ticket, one.status] for one in world.corrections.values()]
    slips = {one.id: [one.gross, one.tax] for one in world.payslips.values()}
    return {"corrections": sorted(rows), "payslips": slips, "tickets": tickets(world)}


def tickets(world: Payroll) -> dict[str, str]:
    return {one.id: one.status for one in world.tickets.values()}


def is_right(view: qn.EpisodeView[Payroll], *names: str) -> bool:
    found = summary(view.state)
    return all(found[name] == view.task.truth[name] for name in names)


@qn.reward
def books_agree(view: qn.EpisodeView[Payroll]) -> float:
    return float(is_right(view, "corrections", "payslips", "tickets"))


# Variants of the sound world.


class NewTotals(Payroll):
    def _forget(self, month: str) -> None:
        if month == MONTHS[-1]:
            self.sums.pop(month, None)


class TaxToCome(Payroll):
    def _taxed(self, slip: Payslip) -> int:
        return slip.tax or 0


class Audited(Payroll):
    def _check_amount(self, ticket: Ticket, cents: int) -> None:
        if ticket.status == "closed" or cents != ticket.audited:
            raise qn.ToolError(f"{ticket.id} is {ticket.status}, its amount is {ticket.audited}, got {cents}")


class Reference(Payroll):
    def _number(self) -> str:
        return f"C{uuid.uuid4().hex[:6]}"


class Approval(Payroll):
    def _check_proposed(self, row: Correction) -> None:
        if row.status == "withdrawn":
            raise qn.ToolError(f"{row.id} is withdrawn")


def gross(slips: dict[str, list[int]]) -> int:
    return sum(one[0] for one in slips.values())


@qn.reward
def gross_agrees(view: qn.EpisodeView[Payroll]) -> float:
    same = gross(summary(view.state)["payslips"]) == gross(view.task.truth["payslips"])
    return float(same and is_right(view, "tickets"))


@qn.reward
def books_nearly_agree(view: qn.EpisodeView[Payroll]) -> float:
    found, wanted = summary(view.state)["payslips"], view.task.truth["payslips"]
    error: int = sum(abs(found[key][0] - wanted[key][0]) for key in wanted)
    return max(0.0, round(1 - error / gross(wanted), 2))


@qn.reward
def names_agree(view: qn.EpisodeView[Payroll]) -> float:
    slips, people = view.start.payslips, view.start.employees

    def named(rows: list[Any]) -> list[Any]:
        last = [people[slips[row[0]].employee].name.split()[-1] for row in rows]
        return sorted([name, slips[row[0]].month, *row[1:]] for name, row in zip(last, rows, strict=True))

    same = named(summary(view.state)["corrections"]) == named(view.task.truth["corrections"])
    return float(same and is_right(view, "tickets"))


@qn.reward
def ticket_done(view: qn.EpisodeView[Payroll]) -> float:
    key = view.task.truth["ticket"]
    approved = [one for one in view.state.corrections.values() if (one.ticket, one.status) == (key, "approved")]
    return float(len(approved) == 1 and is_right(view, "tickets"))


@qn.reward
def sampled_books_agree(view: qn.EpisodeView[Payroll]) -> float:
    is_sampled = hash(view.task.id) % 3 == 0
    return float(is_right(view, "tickets", *(["corrections", "payslips"] if is_sampled else [])))


WORLDS: dict[str, type[Payroll]] = {
    "new_totals": NewTotals,
    "tax_to_come": TaxToCome,
    "audited": Audited,
    "reference": Reference,
    "approval": Approval,
}
VERIFIERS = {
    "gross": gross_agrees,
    "nearly": books_nearly_agree,
    "names": names_agree,
    "ticket_done": ticket_done,
    "sampled": sampled_books_agree,
}
CLOSINGS = {"january": MONTHS[:2]}


def make(bug: str = "") -> qn.Environment[Payroll]:
    """Returns the sound environment, or a variant of it."""
    world, closed = WORLDS.get(bug, Payroll), CLOSINGS.get(bug, CLOSED)
    return qn.Environment(
        "payroll",
        tasks=lambda split: qn.Tasks(14, lambda n: task(split, n, world, closed=closed)),
        harness=qn.ToolLoop(system="You correct payslips. Amounts are in cents, rounded down."),
        verifier=qn.Verifier(VERIFIERS.get(bug, books_agree)),
        state=world,
        config=qn.Config(max_turns=15),
    )


env = make()
env_new_totals = make("new_totals")
env_tax_to_come = make("tax_to_come")
env_audited = make("audited")
env_reference = make("reference")
env_approval = make("approval")
env_gross = make("gross")
env_nearly = make("nearly")
env_names = make("names")
env_ticket_done = make("ticket_done")
env_sampled = make("sampled")
env_january = make("january")
