"""Cash cards: wrong PINs are counted, the third one locks the card, and each attempt is written to a log."""

from typing import Annotated, Literal

import msgspec

import quintain as qn

Card = Literal["red", "blue", "grey"]
Digits = Annotated[str, msgspec.Meta(pattern="^[0-9]{4}$", max_length=4)]
Amount = Annotated[int, msgspec.Meta(ge=1, le=1000)]
PINS = {"red": "4096", "blue": "1815", "grey": "7203"}
TRIES = 3


class Attempt(msgspec.Struct):
    card: str
    what: str
    accepted: bool


class Cards(qn.State):
    balance: dict[str, int]
    wrong: dict[str, int]
    """Wrong PINs in a row; a card with three is locked."""
    log: list[Attempt] = []

    def _check(self, card: str, pin: str, what: str) -> None:
        """Raises if the PIN is wrong or the card locked; the attempt is counted and logged all the same."""
        locked, right = self.wrong[card] >= TRIES, PINS[card] == pin
        self.log.append(Attempt(card, what, right and not locked))
        if locked:
            raise qn.ToolError(f"the {card} card is locked")
        self.wrong[card] = 0 if right else self.wrong[card] + 1
        if not right:
            left = TRIES - self.wrong[card]
            raise qn.ToolError(f"wrong PIN; {left} tries are left" if left else f"wrong PIN; {card} is locked now")

    @qn.tool
    def cards(self) -> dict[str, dict[str, int | bool]]:
        """List the cards with balance, the number of wrong PINs in a row, and whether they are locked."""
        return {
            card: {"balance": self.balance[card], "wrong": wrong, "locked": wrong >= TRIES}
            for card, wrong in self.wrong.items()
        }

    @qn.tool
    def access_log(self) -> list[Attempt]:
        """Read all attempts to pay or to unlock, the oldest first, also refused ones.

        An attempt is accepted if card and PIN are, even if the balance is too small.
        """
        return self.log

    @qn.tool
    def pay(self, card: Card, pin: Digits, amount: Amount) -> int:
        """Pay with a card; returns its new balance.

        Each attempt is logged, also a refused one. A wrong PIN is counted; after three in a row the card is locked,
        and stays so until it is unlocked. The right PIN sets the count to 0.

        Args:
            card: The card.
            pin: Its PIN, four digits.
            amount: How much, 1 to 1000; at most the balance.
        """
        self._check(card, pin, "pay")
        if self.balance[card] < amount:
            raise qn.ToolError(f"the PIN is right, but {card} holds only {self.balance[card]}")
        self.balance[card] -= amount
        return self.balance[card]

    @qn.tool
    def unlock(self, card: Card) -> str:
        """Unlock a card, and set its count of wrong PINs to 0. It is logged.

        Args:
            card: The card.
        """
        self.wrong[card] = 0
        self.log.append(Attempt(card, "unlock", accepted=True))
        return f"the {card} card is not locked"


Call = tuple[str, dict[str, object]]
START, LOCKED = {"red": 120, "blue": 45, "grey": 300}, {"grey"}


def paid(card: str, amount: int, pin: str = "") -> Call:
    return "pay", {"card": card, "pin": pin or PINS[card], "amount": amount}


# Each: what is asked for, balances that change, locked cards at the end, a solution.
JOBS: list[tuple[str, dict[str, int], set[str], list[Call]]] = [
    ("Pay 20 with the red card, PIN 4096.", {"red": 100}, {"grey"}, [paid("red", 20)]),
    (
        "Pay 15 with the red card, PIN 4096, and 45 with the blue card, PIN 1815.",
        {"red": 105, "blue": 0},
        {"grey"},
        [paid("red", 15), paid("blue", 45)],
    ),
    ("Unlock the grey card.", {}, set(), [("unlock", {"card": "grey"})]),
    (
        "Unlock the grey card and pay 250 with it, PIN 7203.",
        {"grey": 50},
        set(),
        [("unlock", {"card": "grey"}), paid("grey", 250)],
    ),
    (
        "The blue card is stolen. Lock it: the only way is to give a wrong PIN three times; 0000 is wrong.",
        {},
        {"grey", "blue"},
        [paid("blue", 1, "0000")] * TRIES,
    ),
    (
        "Test the lock of the red card: pay 1 with it, PIN 4096, and then lock it by the wrong PIN 1234.",
        {"red": 119},
        {"grey", "red"},
        [paid("red", 1), *[paid("red", 1, "1234")] * TRIES],
    ),
    (
        "Pay 40 with the blue card. Its PIN is 1851 or 1815; its owner does not know which.",
        {"blue": 5},
        {"grey"},
        [paid("blue", 40, "1851"), paid("blue", 40)],
    ),
]


def tasks(split: str) -> list[qn.Task[Cards]]:
    start = Cards(balance=dict(START), wrong={card: TRIES if card in LOCKED else 0 for card in PINS})
    rule = "Change no other balance or lock. You are judged by balances and locks, neither by the log nor the counts."
    return [
        qn.Task(
            id=f"{split}-{n}",
            prompt=f"{prompt} {rule}",
            start=start,
            truth={"balance": START | changed, "locked": sorted(locked)},
            solution=tuple(calls),
        )
        for n, (prompt, changed, locked, calls) in enumerate(JOBS, 1)
    ]


@qn.reward
def as_asked(view: qn.EpisodeView[Cards]) -> qn.Score:
    locked = sorted(card for card, wrong in view.state.wrong.items() if wrong >= TRIES)
    found = {"balance": view.state.balance, "locked": locked}
    return qn.Score(float(found == view.task.truth), f"found {found}")


env = qn.Environment(
    "pins", tasks=tasks, harness=qn.ToolLoop(), verifier=qn.Verifier(as_asked), state=Cards, splits=("test",)
)
