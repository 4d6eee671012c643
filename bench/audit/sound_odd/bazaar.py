"""A negotiation with a seller who follows a stated rule; the reward has levels, many series of offers earn all."""

from typing import Annotated

import msgspec

import quintain as qn

Price = Annotated[int, msgspec.Meta(ge=1, le=1000)]
ROUNDS = 6


class Stall(qn.State):
    price: int
    """What the seller asks for now."""
    lowest: int
    rounds: int = 0
    paid: int | None = None

    def _end(self, reason: str) -> str:
        self.finish(reason)
        return reason

    def _open(self) -> None:
        if self.finished:
            raise qn.ToolError(f"the talk is over: {self.finished}")

    @qn.tool
    def ask_price(self) -> str:
        """Ask for the seller's present price and the number of offers that are left. It is not an offer."""
        self._open()
        return f"the seller asks for {self.price}; {ROUNDS - self.rounds} offers are left"

    @qn.tool
    def offer(self, coins: Price) -> str:
        """Offer coins. An offer of the seller's price or more buys the carpet for just what you offer.

        A lower offer of at least half of the price makes the seller go down by half of the difference, rounded down,
        but never below a lowest price that the seller does not tell. After a still lower offer the price stays. After
        six offers that did not buy, the seller leaves.

        Args:
            coins: How many, 1 to 1000.
        """
        self._open()
        if coins >= self.price:
            self.paid = coins
            return self._end(f"you have bought the carpet for {coins}")
        self.rounds += 1
        offended = 2 * coins < self.price
        if not offended:
            self.price = max(self.lowest, self.price - (self.price - coins) // 2)
        if self.rounds == ROUNDS:
            return self._end("the seller has left without a deal")
        says = "that is less than half, the price stays at" if offended else "the price is now"
        return f"{says} {self.price}; {ROUNDS - self.rounds} offers are left"

    @qn.tool
    def accept(self) -> str:
        """Buy the carpet for the seller's present price."""
        self._open()
        self.paid = self.price
        return self._end(f"you have bought the carpet for {self.price}")

    @qn.tool
    def walk_away(self) -> str:
        """End the talk without a deal, for good."""
        self._open()
        return self._end("you have left without a deal")


# Each: first price, lowest price, price for the full reward, price for half of it.
JOBS: list[tuple[int, int, int, int]] = [
    (100, 60, 60, 75),
    (240, 170, 170, 200),
    (80, 20, 34, 50),
    (55, 50, 50, 52),
    (400, 100, 130, 200),
    (150, 90, 95, 120),
    (999, 300, 300, 500),
]


def halves(price: int, lowest: int, full: int) -> list[int]:
    """Returns offers of half of the price each, until the price is low enough; they are fewer than ROUNDS."""
    offers: list[int] = []
    while price > full:
        offers.append((price + 1) // 2)
        price = max(lowest, price - (price - offers[-1]) // 2)
    return offers


def tasks(split: str) -> list[qn.Task[Stall]]:
    made: list[qn.Task[Stall]] = []
    for n, (price, lowest, full, half) in enumerate(JOBS, 1):
        prompt = (
            f"Buy the carpet. The seller asks for {price} coins and comes down when you make offers; at most six of "
            f"them. Your reward is 1 if you pay at most {full} coins, which can be reached, 0.5 if you pay at most "
            f"{half}, and 0 if you pay more or do not buy. How many offers it takes does not count."
        )
        offers = halves(price, lowest, full)
        calls: list[tuple[str, dict[str, object]]] = [("offer", {"coins": coins}) for coins in offers]
        made.append(
            qn.Task(
                id=f"{split}-{n}",
                prompt=prompt,
                start=Stall(price=price, lowest=lowest),
                truth={"full": full, "half": half},
                solution=(*calls, ("accept", {})),
            )
        )
    return made


@qn.reward
def bargain(view: qn.EpisodeView[Stall]) -> qn.Score:
    paid, truth = view.state.paid, view.task.truth
    if paid is None:
        return qn.Score(0.0, "no deal")
    return qn.Score(1.0 if paid <= truth["full"] else 0.5 if paid <= truth["half"] else 0.0, f"paid {paid}")


env = qn.Environment(
    "bazaar", tasks=tasks, harness=qn.ToolLoop(), verifier=qn.Verifier(bargain), state=Stall, splits=("test",)
)
