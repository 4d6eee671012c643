"""Wallet in four currencies: exact amounts in the smallest unit, a ledger that only grows, and undo by reversal."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

import quintain as qn
from quintain.state import Rng
from quintain.task import Call

Currency = Literal["EUR", "GBP", "JPY", "USD"]
Amount = Annotated[int, Meta(ge=1, le=10**9)]
PER_EURO: dict[Currency, int] = {"EUR": 10_000, "GBP": 8_450, "JPY": 1_624_000, "USD": 10_825}
"""Ten-thousandths of a unit for one euro."""
UNITS: dict[Currency, int] = {"EUR": 100, "GBP": 100, "JPY": 1, "USD": 100}
"""Smallest units (cents, pence, yen) in one unit."""
PAYEES = ("Maya", "Noor", "Pavel", "Quinn")
PAGE = 5


class Entry(msgspec.Struct):
    """One line of the ledger; `undoes` is the number of the line that it reverses, 0 for none."""

    number: int
    text: str
    changes: dict[Currency, int]
    payee: str = ""
    undoes: int = 0


class Wallet(qn.State):
    balances: dict[Currency, int]
    ledger: list[Entry] = []
    received: dict[str, dict[Currency, int]] = {}

    @qn.tool
    def show(self) -> dict[str, dict[Currency, int]]:
        """Show the balances in the smallest unit, and how many of these make one unit: cents, pence, yen."""
        return {"balances": self.balances, "smallest_per_unit": UNITS}

    @qn.tool
    def quote(self, source: Currency, target: Currency, amount: Amount) -> dict[str, int]:
        """Say what a conversion gives, without making it; fractions of the smallest unit are dropped.

        The balance does not matter. A conversion within one currency, or into less than a smallest unit, is refused.

        Args:
            source: Currency that is given.
            target: Currency that is wanted.
            amount: Smallest units of the source, at most 1,000,000,000.
        """
        return {"gives": self._gain(source, target, amount)}

    @qn.tool
    def convert(self, source: Currency, target: Currency, amount: Amount) -> Entry:
        """Convert money at fixed rates without a fee; returns the line of the ledger. See `quote` for the rounding.

        Args:
            source: Currency that is given.
            target: Currency that is wanted; another one.
            amount: Smallest units of the source, at most 1,000,000,000.
        """
        gained = self._gain(source, target, amount)
        self._enough(source, amount)
        return self._book(f"{amount} {source} to {gained} {target}", {source: -amount, target: gained})

    @qn.tool
    def pay(self, payee: str, currency: Currency, amount: Amount) -> Entry:
        """Pay somebody; returns the line of the ledger.

        Args:
            payee: Maya, Noor, Pavel or Quinn.
            currency: Currency of the payment.
            amount: Smallest units, at most 1,000,000,000.
        """
        if payee not in PAYEES:
            raise qn.ToolError(f"no payee {payee!r}; payees: {', '.join(PAYEES)}")
        self._enough(currency, amount)
        return self._book(f"{amount} {currency} to {payee}", {currency: -amount}, payee=payee)

    @qn.tool
    def undo(self) -> Entry:
        """Undo the newest line that is neither undone nor an undoing itself; returns the line that reverses it.

        The ledger keeps both lines. A payment that is undone comes back; an undoing cannot be undone.
        """
        undone = {entry.undoes for entry in self.ledger}
        left = [entry for entry in self.ledger if not entry.undoes and entry.number not in undone]
        if not left:
            raise qn.ToolError("there is nothing left to undo")
        entry = left[-1]
        for currency, change in entry.changes.items():
            self._enough(currency, change)
        changes: dict[Currency, int] = {currency: -change for currency, change in entry.changes.items()}
        return self._book(f"undoes line {entry.number}", changes, payee=entry.payee, undoes=entry.number)

    @qn.tool
    def read_ledger(self, page: Annotated[int, Meta(ge=1, le=1000)] = 1) -> dict[str, object]:
        """Read the ledger, five lines on a page, the newest first.

        Args:
            page: Number of the page, from 1.
        """
        pages = max(1, -(-len(self.ledger) // PAGE))
        if page > pages:
            raise qn.ToolError(f"page {page} does not exist; pages: 1 to {pages}")
        newest = self.ledger[::-1][(page - 1) * PAGE : page * PAGE]
        return {"total": len(self.ledger), "pages": pages, "lines": newest}

    def _gain(self, source: Currency, target: Currency, amount: int) -> int:
        gained = amount * PER_EURO[target] * UNITS[target] // (PER_EURO[source] * UNITS[source])
        if source == target:
            raise qn.ToolError(f"source and target are both {source}; give two currencies")
        if not gained:
            raise qn.ToolError(f"{amount} {source} are worth less than the smallest unit of {target}")
        return gained

    def _enough(self, currency: Currency, amount: int) -> None:
        if self.balances[currency] < amount:
            raise qn.ToolError(f"{amount} {currency} are not there; the balance is {self.balances[currency]}")

    def _book(self, text: str, changes: dict[Currency, int], *, payee: str = "", undoes: int = 0) -> Entry:
        for currency, change in changes.items():
            self.balances[currency] += change
            if payee:
                account = self.received.setdefault(payee, {})
                account[currency] = account.get(currency, 0) - change
        self.ledger.append(Entry(len(self.ledger) + 1, text, changes, payee, undoes))
        return self.ledger[-1]


def spelled(currency: Currency, amount: int) -> str:
    return f"{amount} {currency}" if UNITS[currency] == 1 else f"{amount // 100}.{amount % 100:02} {currency}"


def money(wallet: Wallet) -> dict[str, dict[Currency, int]]:
    """Returns who has what; accounts without money do not count."""
    paid: dict[str, dict[Currency, int]] = {
        payee: {key: n for key, n in account.items() if n} for payee, account in wallet.received.items()
    }
    return {"me": wallet.balances} | {payee: account for payee, account in paid.items() if account}


def make(split: str, number: int) -> qn.Task[Wallet]:
    rng = Rng(key=f"currency_wallet/{split}/{number}".encode())
    wallet = Wallet(balances={"EUR": 100_000 + rng.below(50_000), "GBP": 20_000, "JPY": 9_000, "USD": 15_000})
    wallet.convert("EUR", "USD", 5_000 + rng.below(900))
    target: Currency = ("USD", "GBP", "JPY")[number % 3]
    payee, wrong = rng.sample(PAYEES, 2)
    amount, given = 1_500 + rng.below(4_000), 10_000 + rng.below(20_000)
    calls: list[Call] = []
    if number % 2:
        wallet.pay(wrong, target, amount)
        calls.append(("undo", {}))
        wish = f"My last payment, {spelled(target, amount)} to {wrong}, was for {payee}: undo it and pay {payee}. Then"
    else:
        wish = f"Pay {payee} {spelled(target, amount)}, and"
    calls.append(("pay", {"payee": payee, "currency": target, "amount": amount}))
    calls.append(("convert", {"source": "EUR", "target": target, "amount": given}))
    later = wallet.copy()
    for name, arguments in calls:
        getattr(later, name)(**arguments)
    return qn.Task(
        id=f"{split}-{number}",
        prompt=f"{wish} convert {spelled('EUR', given)} to {target} in one conversion. Do nothing else with my money.",
        start=wallet,
        truth=money(later),
        solution=tuple(calls),
    )


@qn.reward
def money_is_right(view: qn.EpisodeView[Wallet]) -> qn.Score:
    """Scores 1 if everybody has the right money; the ledger may hold more lines, such as an undone mistake."""
    found = money(view.state)
    return qn.Score(float(found == view.task.truth), f"found {found}, expected {view.task.truth}")


env = qn.Environment(
    "currency_wallet",
    tasks=lambda split: qn.Tasks(12, lambda number: make(split, number)),
    harness=qn.ToolLoop(),
    verifier=qn.Verifier(money_is_right),
    state=Wallet,
)
