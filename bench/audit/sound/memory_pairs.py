"""Memory with cards that the world's random stream deals at the first look; turning a card shows the truth."""

from itertools import combinations
from typing import Annotated

from msgspec import Meta

import quintain as qn

THEMES = {
    "animals": ("otter", "heron", "lynx", "toad"),
    "tools": ("hammer", "saw", "chisel", "plane"),
    "fruit": ("plum", "quince", "pear", "fig"),
    "colours": ("teal", "ochre", "rust", "navy"),
}


class Memory(qn.State):
    """Table of cards, face down.

    Attributes:
        motifs: Each motif is on two cards.
        cards: Motifs by place; empty until the cards are dealt.
        found: Motifs whose pair was turned.
        attempts: Attempts that are left.
    """

    motifs: list[str]
    attempts: int
    cards: list[str] = []
    found: list[str] = []

    @qn.tool
    def table(self) -> dict[str, object]:
        """Show the number of cards, the motifs that were found, and the attempts that are left."""
        return {"cards": 2 * len(self.motifs), "found": self.found, "attempts_left": self.attempts}

    @qn.tool
    def turn(self, first: Annotated[int, Meta(ge=1, le=8)], second: Annotated[int, Meta(ge=1, le=8)]) -> str:
        """Turn two different cards over; two equal motifs are found for good, others are hidden again.

        Each accepted call is one attempt, also for cards that were found before. The game ends when all pairs are found
        or no attempt is left.

        Args:
            first: Place of a card, from 1.
            second: Place of another card.
        """
        if self.finished:
            raise qn.ToolError("the game is over")
        size = 2 * len(self.motifs)
        if first == second or max(first, second) > size:
            raise qn.ToolError(f"cannot turn {first} and {second}; give two different places from 1 to {size}")
        if not self.cards:
            self.cards = 2 * self.motifs
            self.rng.shuffle(self.cards)
        one, other = self.cards[first - 1], self.cards[second - 1]
        self.attempts -= 1
        if one == other and one not in self.found:
            self.found.append(one)
        if len(self.found) == len(self.motifs):
            self.finish("all pairs are found")
        elif not self.attempts:
            self.finish("no attempt is left")
        verdict = "a pair" if one == other else "no pair"
        return f"{first}: {one}, {second}: {other}; {verdict}; {self.attempts} attempts left"


def task(theme: str, size: int) -> qn.Task[Memory]:
    """Returns a game in which turning every two cards once finds all pairs, however the cards lie."""
    every = list(combinations(range(1, 2 * size + 1), 2))
    return qn.Task(
        id=f"{theme}-{size}",
        prompt=(
            f"Play Memory with {2 * size} cards, on which {size} motifs ({theme}) stand twice each. You have "
            f"{len(every)} attempts; each turns two cards. Find all pairs."
        ),
        start=Memory(motifs=list(THEMES[theme][:size]), attempts=len(every)),
        solution=tuple(("turn", {"first": first, "second": second}) for first, second in every),
        tags={"pairs": str(size)},
    )


@qn.reward
def all_found(view: qn.EpisodeView[Memory]) -> qn.Score:
    found, size = len(view.state.found), len(view.state.motifs)
    return qn.Score(float(found == size), f"{found} of {size} pairs")


env = qn.Environment(
    "memory_pairs",
    tasks=lambda split: [task(theme, size) for theme in THEMES for size in (2, 3, 4)],
    harness=qn.ToolLoop(),
    verifier=qn.Verifier(all_found),
    state=Memory,
    splits=("test",),
)
