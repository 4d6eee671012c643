"""Payables: the desk of an accounts-payable clerk, with a bank that works while the clerk waits."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, ClassVar, Literal

import quintain as qn
from quintain.state import Rng
from quintain.verifier import Criterion

NAMES = ("Abel Paper", "Brandt Cleaning", "Cordes Lifts", "Dahl Catering")
SYSTEM = (
    "You do accounts payable. The bank runs at 16:00 UTC, Monday to Friday, and reports each payment as settled or "
    "returned at 09:00 of the next working day. Time passes only when you wait. Change only what you are asked to."
)


@dataclass
class Invoice:
    supplier: str
    cents: int
    discount_percent: int
    discount_until: date
    status: Literal["open", "queued", "sent", "paid"] = "open"


@dataclass
class Payment:
    invoice: str
    cents: int
    account: str
    day: date
    status: Literal["queued", "sent", "settled", "returned", "cancelled"] = "queued"


def at(day: date, hour: int) -> float:
    """The moment of a full hour of a day."""
    return datetime(day.year, day.month, day.day, hour, tzinfo=UTC).timestamp()


def next_working(day: date) -> date:
    """The first working day after a day."""
    return day + timedelta({4: 3, 5: 2}.get(day.weekday(), 1))


class Payables(qn.State):
    invoices: dict[str, Invoice]
    suppliers: dict[str, str]
    payments: dict[str, Payment] = {}
    mails: list[tuple[float, str]] = []
    closed: list[str] = []
    presented: list[str] = []

    @qn.tool
    def list_invoices(self) -> dict[str, str]:
        """List the invoices: for each its supplier and its status."""
        return {key: f"{one.supplier}, {one.status}" for key, one in self.invoices.items()}

    @qn.tool
    def read_invoice(self, invoice: str) -> Invoice:
        """Read an invoice. The discount is off the amount if the bank runs no later than on discount_until.

        Args:
            invoice: Its number, such as R1234.
        """
        if invoice not in self.invoices:
            raise qn.ToolError(f"there is no invoice {invoice}")
        return self.invoices[invoice]

    @qn.tool
    def set_account(self, supplier: str, account: str) -> str:
        """Change the account of a supplier, for payments that are scheduled from now on.

        Args:
            supplier: Its full name.
            account: The new account, such as DE12 3456.
        """
        if supplier not in self.suppliers:
            raise qn.ToolError(f"there is no supplier {supplier!r}")
        if not re.fullmatch(r"[A-Z]{2}[0-9]{2} [0-9]{4}", account):
            raise qn.ToolError(f"{account!r} is not an account such as DE12 3456")
        self.suppliers[supplier] = account
        return f"{supplier} has account {account}"

    @qn.tool
    def schedule(self, invoice: str, cents: int, day: date) -> str:
        """Schedule the payment of an open invoice to its supplier's account; returns the number of the payment.

        The bank does not pay one invoice to the same account twice.

        Args:
            invoice: Number of the invoice.
            cents: How much to pay, from 1 to the invoice's amount.
            day: Day of the bank run, YYYY-MM-DD: a working day whose run is still to come.
        """
        owed = self.read_invoice(invoice)
        if owed.status != "open" or not 0 < cents <= owed.cents:
            raise qn.ToolError(f"{invoice} is {owed.status} and about {owed.cents} cents")
        run = self._run_day(day)
        number = self.new_id("P")
        self.payments[number] = Payment(invoice, cents, self.suppliers[owed.supplier], run)
        owed.status = "queued"
        self.clock.at(at(run, 16), self._take, number=number)
        return number

    @qn.tool
    def list_payments(self) -> dict[str, Payment]:
        """List all payments with their status."""
        return self.payments

    @qn.tool
    def cancel(self, payment: str) -> str:
        """Cancel one queued payment; its invoice is open again.

        Args:
            payment: Number of the payment, such as P1.
        """
        if payment not in self.payments or self.payments[payment].status != "queued":
            raise qn.ToolError(f"there is no queued payment {payment}")
        for one in self._stopped_with(self.payments[payment]):
            one.status, self.invoices[one.invoice].status = "cancelled", "open"
        return f"{payment} is cancelled"

    @qn.tool
    def inbox(self) -> list[str]:
        """Read all mails so far, oldest first."""
        return [f"{datetime.fromtimestamp(when, UTC):%Y-%m-%d %H:%M} {text}" for when, text in sorted(self._mails())]

    @qn.tool
    def wait(self, hours: int) -> str:
        """Let time pass; returns date and time.

        Args:
            hours: How many hours, 1 to 72.
        """
        if not 1 <= hours <= 72:
            raise qn.ToolError("wait 1 to 72 hours")
        self.clock.advance(hours * 3600)
        return f"{self.clock.date:%A %Y-%m-%d %H:%M}"

    def _take(self, number: str) -> None:
        payment = self.payments[number]
        if payment.status == "queued":
            payment.status = self.invoices[payment.invoice].status = "sent"
            self.clock.at(at(next_working(payment.day), 9), self._report, number=number)

    def _report(self, number: str) -> None:
        payment, invoice = self.payments[number], self.invoices[self.payments[number].invoice]
        twice = f"{payment.invoice} {payment.account}" in self._seen()
        self._seen().append(f"{payment.invoice} {payment.account}")
        if twice or payment.account in self.closed:
            payment.status, invoice.status = "returned", "open"
            why = "this invoice went to this account before" if twice else "the account is closed"
            self.mails.append((self.clock.now, f"Bank: Payment {number} ({payment.invoice}) came back: {why}."))
        else:
            payment.status, invoice.status = "settled", "paid"

    def _run_day(self, day: date) -> date:
        if day.weekday() > 4 or at(day, 16) <= self.clock.now:
            raise qn.ToolError(f"the bank does not run on {day} any more; it is {self.clock.date:%A %Y-%m-%d %H:%M}")
        return day

    def _stopped_with(self, payment: Payment) -> list[Payment]:
        return [payment]

    def _seen(self) -> list[str]:
        return self.presented

    def _mails(self) -> list[tuple[float, str]]:
        return [mail for mail in self.mails if mail[0] <= self.clock.now]


def write(world: type[Payables], split: str, index: int) -> qn.Task[Payables]:  # noqa: C901, PLR0915
    """Writes task `index` of a split, and what a clerk does who knows what to do."""
    rng = Rng(key=hashlib.blake2b(f"payables/{split}/{index}".encode(), digest_size=16).digest())
    family, count = ("discount", "returned", "dispute")[index % 3], 1 + index // 3 % 3
    today = date(2026, 3, 2) + timedelta(7 * rng.below(40))
    fresh, *accounts = [f"DE{10 + 12 * n + rng.below(12)} {rng.below(10_000):04}" for n in range(5)]
    start = world(invoices={}, suppliers=dict(zip(NAMES, accounts, strict=True)))
    for n, name in enumerate((*NAMES, *NAMES, rng.choice(NAMES)), start=1):
        cents, until = 50 * (200 + rng.below(9000)), today + timedelta(1 + rng.below(8))
        start.invoices[f"R{1000 * n + rng.below(1000)}"] = Invoice(name, cents, rng.choice((2, 4)), until)
    numbers = rng.sample(list(start.invoices), 9)
    start.clock.now = moment = at(today, 8)
    start.mails.append((at(today, 7), "Facilities: The office stays closed this Saturday."))
    goals: dict[str, dict[str, list[Any]]] = {}
    calls: list[tuple[str, dict[str, Any]]] = []

    def until_hour(day: date, hour: int) -> None:
        nonlocal moment
        while moment < at(day, hour):
            hours = min(72, round((at(day, hour) - moment) / 3600))
            calls.append(("wait", {"hours": hours}))
            moment += hours * 3600

    def pay(number: str, cents: int, run: date, account: str = "", back: tuple[date, ...] = ()) -> None:
        calls.append(("schedule", {"invoice": number, "cents": cents, "day": run.isoformat()}))
        account = account or start.suppliers[start.invoices[number].supplier]
        goals[number] = {"pay": [[cents, account, run]], "back": list(back)}

    key, one, run = numbers[0], start.invoices[numbers[0]], next_working(today)
    also = [other for other in numbers[1:7] if start.invoices[other].supplier != one.supplier][: count - 1]
    if family == "discount":
        also = numbers[:count]
        ask = f"Pay {', '.join(also)}, each less its discount, in the last run that its discount allows."
        for other in also:
            one = start.invoices[other]
            day = one.discount_until - timedelta(max(0, one.discount_until.weekday() - 4))
            calls.append(("read_invoice", {"invoice": other}))
            pay(other, one.cents * (100 - one.discount_percent) // 100, day)
    else:
        ask = f"Pay {', '.join(also)} in full, without discount, in the run of {run}. " if also else ""
        for other in also:
            pay(other, start.invoices[other].cents, run)
    if family == "returned":
        start.closed.append(start.suppliers[one.supplier])
        back = next_working(run)
        again = next_working(back)
        start.mails.append((at(back, 11), f"{one.supplier}: Our account is {fresh} now; the old one is closed."))
        ask += (
            f"Pay {key} in full in the run of {run}, too. It may come back; then the supplier will mail us by noon of "
            f"{back}: change its account, pay {key} again in the run of {again}, and see that it settles."
        )
        pay(key, one.cents, run)
        until_hour(back, 12)
        calls += [("inbox", {}), ("set_account", {"supplier": one.supplier, "account": fresh})]
        pay(key, one.cents, again, fresh, (run,))
    if family == "dispute":
        for other in (key, *numbers[7:]):
            start.schedule(other, start.invoices[other].cents, run)
        ask += f"We dispute {key}: its payment must not go out. The other payments in the queue stay."
        calls += [("list_payments", {}), ("cancel", {"payment": "P1"})]
        goals[key] = {"pay": [], "back": []}
    for _, _, day in [pay for goal in goals.values() for pay in goal["pay"]]:
        until_hour(next_working(day), 9)
    about: dict[str, Any] = {"id": f"{split}-{index}", "prompt": f"It is Monday, {today}, 08:00. {ask}"}
    return qn.Task(**about, start=start, truth=goals, solution=tuple(calls), tags={"family": family})


def judged(good: tuple[str, ...] = ("settled",), *, whole: bool = False) -> Criterion[Payables]:
    """The criterion of the work: of each invoice exactly one payment, as asked; none where it is disputed."""

    @qn.reward
    def done(view: qn.EpisodeView[Payables]) -> qn.Score:
        missed: list[str] = []
        for number, goal in view.task.truth.items():
            mine = [one for one in view.state.payments.values() if one.invoice == number]
            alive = [one for one in mine if one.status in ("queued", "sent", "settled")]
            right = [[one.cents, one.account, one.day] for one in alive if one.status in good] == goal["pay"]
            tried = {one.day for one in mine if one.status == "returned"} >= set(goal["back"])
            if not right or not tried or (alive and not goal["pay"]):
                missed.append(number)
        share = 1 - len(missed) / len(view.task.truth)
        return qn.Score(round(share) if whole else share, f"missed: {', '.join(missed) or 'nothing'}")

    return done


@qn.reward
def untouched(view: qn.EpisodeView[Payables]) -> float:
    """1 if no other payment and no other account changed."""
    goals, start, end = view.task.truth, view.start, view.state
    others = {key: one for key, one in end.payments.items() if one.invoice not in goals}
    kept = all((one.status == "cancelled") == (key not in start.payments) for key, one in others.items())
    known = {(start.invoices[key].supplier, pay[1]) for key, goal in goals.items() for pay in goal["pay"]}
    return float(kept and end.suppliers.items() <= start.suppliers.items() | known)


class Listing(Payables):
    lists: dict[str, dict[str, str]] = {}

    def list_invoices(self) -> dict[str, str]:
        """List from memory, which a new payment renews."""
        return self.lists.setdefault(str(len(self.payments)), super().list_invoices())


class Helpful(Payables):
    def _run_day(self, day: date) -> date:
        runs = day.weekday() < 5 and at(day, 16) > self.clock.now
        return day if runs else next_working(self.clock.date.date())


class Sweeping(Payables):
    def _stopped_with(self, payment: Payment) -> list[Payment]:
        queued = [one for one in self.payments.values() if one.status == "queued"]
        return [one for one in queued if one.account == payment.account]


class Ledger(Payables):
    ledger: ClassVar[list[str]] = []

    def _seen(self) -> list[str]:
        return self.ledger


class Mailbox(Payables):
    def _mails(self) -> list[tuple[float, str]]:
        return self.mails


def build(world: type[Payables] = Payables, work: Criterion[Payables] | None = None) -> qn.Environment[Payables]:
    """Makes the environment."""
    return qn.Environment(
        "payables",
        tasks=lambda split: qn.Tasks(24, lambda index: write(world, split, index)),
        harness=qn.ToolLoop(system=SYSTEM),
        verifier=qn.Verifier(work or judged(), untouched, combine="product"),
        state=world,
        splits=("train", "test"),
    )


env = build()
env_listing, env_next_run, env_sweeping = build(Listing), build(Helpful), build(Sweeping)
env_ledger, env_mailbox = build(Ledger), build(Mailbox)
env_promised, env_rounded = build(work=judged(("queued", "sent", "settled"))), build(work=judged(whole=True))
