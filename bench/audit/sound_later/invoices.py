"""Invoices in cents: a discount and a tax per line, each rounded half up, drafts that become final."""

from typing import Annotated, Literal

import msgspec

import quintain as qn
from quintain.resources.database import Database, References

Sku = Literal["cable", "lamp", "desk", "hours"]
PRICES: dict[str, tuple[int, int]] = {"cable": (1295, 19), "lamp": (4999, 19), "desk": (23950, 19), "hours": (8333, 7)}
Count = Annotated[int, msgspec.Meta(ge=1, le=1000)]
Number = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
ROUNDING = (
    "A line's net is count x price, less its discount in percent; its tax is the net x the tax rate. Net and tax are "
    "each rounded to the cent, half a cent up. The total is the sum of all nets and taxes."
)


class Invoice(msgspec.Struct):
    id: int
    customer: str
    final: bool = False


class Line(msgspec.Struct):
    id: int
    invoice: Annotated[int, References(Invoice, "cascade")]
    item: Sku
    count: int
    discount: int


class LineView(msgspec.Struct):
    line: int
    item: str
    count: int
    discount: int
    net_cents: int
    tax_cents: int


class InvoiceView(msgspec.Struct):
    invoice: int
    customer: str
    status: str
    lines: list[LineView]
    total_cents: int


def percent(cents: int, rate: int) -> int:
    """Returns a share of an amount, rounded half up."""
    return (cents * rate + 50) // 100


def amounts(item: str, count: int, discount: int) -> tuple[int, int]:
    price, rate = PRICES[item]
    net = percent(count * price, 100 - discount)
    return net, percent(net, rate)


def fill(db: Database) -> None:
    db.insert(Invoice(1, "Arden Ltd"), Invoice(2, "Bluff & Co", final=True))
    db.insert(Line(1, 1, "lamp", 2, 0), Line(2, 2, "desk", 1, 10))


class Billing(qn.State):
    db: Database
    last_line: int = 2  # Numbers of removed lines are not used again.

    def _draft(self, invoice: int) -> InvoiceView:
        found = self.show_invoice(invoice)
        if found.status == "final":
            raise qn.ToolError(f"invoice {invoice} is final and cannot be changed")
        return found

    @qn.tool
    def price_list(self) -> dict[str, dict[str, int]]:
        """Read the price in cents and the tax rate in percent of each item."""
        return {item: {"price_cents": price, "tax_percent": rate} for item, (price, rate) in PRICES.items()}

    @qn.tool
    def list_invoices(self) -> list[Invoice]:
        """List all invoices by number."""
        return self.db.all(Invoice, "SELECT * FROM invoices ORDER BY id")

    @qn.tool
    def show_invoice(self, invoice: Number) -> InvoiceView:
        """Read an invoice with its lines and amounts in cents.

        Args:
            invoice: Its number.
        """
        head = self.db.one(Invoice, "SELECT * FROM invoices WHERE id = ?", invoice)
        if head is None:
            raise qn.ToolError(f"unknown invoice {invoice}")
        lines = [
            LineView(row.id, row.item, row.count, row.discount, *amounts(row.item, row.count, row.discount))
            for row in self.db.all(Line, "SELECT * FROM lines WHERE invoice = ? ORDER BY id", invoice)
        ]
        total = sum(line.net_cents + line.tax_cents for line in lines)
        return InvoiceView(invoice, head.customer, "final" if head.final else "draft", lines, total)

    @qn.tool
    def create_invoice(self, customer: Annotated[str, msgspec.Meta(min_length=1, max_length=60)]) -> InvoiceView:
        """Create an empty draft; numbers count up from the highest one.

        Args:
            customer: Name of the customer.
        """
        number = 1 + (self.db.one(int, "SELECT max(id) FROM invoices") or 0)
        self.db.insert(Invoice(number, customer))
        return self.show_invoice(number)

    @qn.tool
    def add_line(
        self, invoice: Number, item: Sku, count: Count, discount: Annotated[int, msgspec.Meta(ge=0, le=50)] = 0
    ) -> InvoiceView:
        """Add a line to a draft. An item may stand on several lines. Returns the invoice.

        Args:
            invoice: Its number.
            item: The item.
            count: How many.
            discount: In percent.
        """
        self._draft(invoice)
        self.last_line += 1
        self.db.insert(Line(self.last_line, invoice, item, count, discount))
        return self.show_invoice(invoice)

    @qn.tool
    def remove_line(self, invoice: Number, line: Number) -> InvoiceView:
        """Remove a line from a draft. Returns the invoice.

        Args:
            invoice: Its number.
            line: Number of the line, as the invoice shows it.
        """
        if line not in [row.line for row in self._draft(invoice).lines]:
            raise qn.ToolError(f"invoice {invoice} has no line {line}")
        self.db.execute("DELETE FROM lines WHERE id = ?", line)
        return self.show_invoice(invoice)

    @qn.tool
    def finalize(self, invoice: Number) -> InvoiceView:
        """Make a draft final; it needs a line, and cannot be changed afterwards.

        Args:
            invoice: Its number.
        """
        if not self._draft(invoice).lines:
            raise qn.ToolError(f"invoice {invoice} has no lines")
        self.db.execute("UPDATE invoices SET final = 1 WHERE id = ?", invoice)
        return self.show_invoice(invoice)


Wanted = list[tuple[str, int, int]]
JOBS: list[tuple[int, str, Wanted, str]] = [
    (3, "Cask Inc", [("cable", 7, 0)], "Bill Cask Inc for 7 cables"),
    (3, "Dunes AG", [("lamp", 3, 15), ("hours", 5, 0)], "Bill Dunes AG for 3 lamps with 15 % discount and 5 hours"),
    (
        3,
        "Elm KG",
        [("hours", 1, 0), ("hours", 1, 50)],
        "Bill Elm KG for 1 hour, on a second line for 1 at 50 % discount",
    ),
    (1, "Arden Ltd", [("lamp", 2, 0)], "Finalize the draft of Arden Ltd as it is"),
    (1, "Arden Ltd", [("lamp", 2, 0), ("desk", 4, 3)], "Add 4 desks with 3 % discount to the draft of Arden Ltd"),
    (1, "Arden Ltd", [("lamp", 1, 5)], "Replace the line of Arden Ltd's draft by one of 1 lamp with 5 % discount"),
    (
        3,
        "Bluff & Co",
        [("desk", 2, 33), ("cable", 11, 1)],
        "Bill Bluff & Co on a new invoice for 2 desks with 33 % discount and 11 cables with 1 %",
    ),
]


def solution(number: int, customer: str, wanted: Wanted, *, replace: bool) -> list[tuple[str, dict[str, object]]]:
    calls: list[tuple[str, dict[str, object]]] = []
    if number == 3:
        calls.append(("create_invoice", {"customer": customer}))
    if replace:
        calls.append(("remove_line", {"invoice": 1, "line": 1}))
    kept = number == 1 and not replace
    for item, count, discount in wanted[kept:]:
        calls.append(("add_line", {"invoice": number, "item": item, "count": count, "discount": discount}))
    return [*calls, ("finalize", {"invoice": number})]


def tasks(split: str) -> list[qn.Task[Billing]]:
    world = Billing(db=Database(Invoice, Line, seed=fill))
    made: list[qn.Task[Billing]] = []
    for n, (number, customer, wanted, asked) in enumerate(JOBS, 1):
        others = [[1, "Arden Ltd", "draft", [["lamp", 2, 0]]]] if number == 3 else []
        mine = [number, customer, "final", sorted([item, count, off] for item, count, off in wanted)]
        total = str(sum(sum(amounts(*line)) for line in wanted))
        prompt = (
            f"{asked}. Make the invoice final; add and change no other. {ROUNDING} Then answer with the total of that "
            "invoice in cents, in digits and nothing else. The order of lines is free."
        )
        final = sorted([*others, mine, [2, "Bluff & Co", "final", [["desk", 1, 10]]]])
        calls = solution(number, customer, wanted, replace=asked.startswith("Replace"))
        truth = {"invoices": final, "total": total}
        made.append(
            qn.Task(id=f"{split}-{n}", prompt=prompt, start=world, truth=truth, solution=tuple(calls), answer=total)
        )
    return made


@qn.reward
def billed(view: qn.EpisodeView[Billing]) -> qn.Score:
    shown = [view.state.show_invoice(row.id) for row in view.state.list_invoices()]
    found = [
        [one.invoice, one.customer, one.status, sorted([row.item, row.count, row.discount] for row in one.lines)]
        for one in shown
    ]
    return qn.Score(float(found == view.task.truth["invoices"]), f"found {found}")


@qn.reward
def total_said(view: qn.EpisodeView[Billing]) -> float:
    return float(view.answer.strip() == view.task.truth["total"])


env = qn.Environment(
    "invoices",
    tasks=tasks,
    harness=qn.ToolLoop(),
    verifier=qn.Verifier(billed, total_said, combine="product"),
    state=Billing,
    splits=("test",),
)
