"""Nim against an opponent that never errs; illegal moves are refused and change nothing."""

from typing import Annotated

from msgspec import Meta

import quintain as qn
from quintain.state import Rng
from quintain.task import Call

COUNTS = {"train": 30, "validation": 10, "test": 10}


def best_move(heaps: list[int]) -> tuple[int, int]:
    """Returns the heap's place and how many to take: the winning move, or one from the largest heap without one."""
    total = heaps[0] ^ heaps[1] ^ heaps[2]
    for place, size in enumerate(heaps):
        if size ^ total < size:
            return place, size - (size ^ total)
    return heaps.index(max(heaps)), 1


class Nim(qn.State):
    heaps: list[int]
    winner: str = ""

    @qn.tool
    def board(self) -> list[int]:
        """Show the heaps; it is always your move, since the opponent answers at once."""
        return self.heaps

    @qn.tool
    def take(self, heap: Annotated[int, Meta(ge=1, le=3)], count: Annotated[int, Meta(ge=1, le=9)]) -> str:
        """Take stones from one heap. The opponent then takes too. Whoever takes the last stone of all wins.

        Args:
            heap: Number of the heap, 1 to 3.
            count: How many stones, at least 1 and at most as many as the heap holds.
        """
        if self.winner:
            raise qn.ToolError(f"the game is over; the winner is {self.winner}")
        if count > self.heaps[heap - 1]:
            raise qn.ToolError(f"heap {heap} holds {self.heaps[heap - 1]} stones, so {count} cannot be taken")
        self.heaps[heap - 1] -= count
        if not any(self.heaps):
            return self._end("you")
        place, taken = best_move(self.heaps)
        self.heaps[place] -= taken
        reply = f"the opponent takes {taken} from heap {place + 1}; heaps: {self.heaps}"
        return reply if any(self.heaps) else f"{reply}; {self._end('the opponent')}"

    def _end(self, winner: str) -> str:
        self.winner = winner
        self.finish("the game is over")
        return f"the winner is {winner}"


def openings() -> list[list[int]]:
    """Returns all starts in which the first player can win, in a fixed random order."""
    found = [[a, b, c] for a in range(1, 8) for b in range(a, 8) for c in range(b, 8) if a ^ b ^ c]
    Rng(key=b"nim_game").shuffle(found)
    return found


OPENINGS = openings()


def winning_calls(heaps: list[int]) -> tuple[Call, ...]:
    game, calls = Nim(heaps=list(heaps)), list[Call]()
    while not game.winner:
        place, count = best_move(game.heaps)
        calls.append(("take", {"heap": place + 1, "count": count}))
        game.take(heap=place + 1, count=count)
    return tuple(calls)


def make(split: str, number: int) -> qn.Task[Nim]:
    """Returns task `number`; the splits share no opening."""
    before = sum(COUNTS[name] for name in list(COUNTS)[: list(COUNTS).index(split)])
    heaps = OPENINGS[before + number]
    return qn.Task(
        id=f"{split}-{number}",
        prompt=(
            f"We play Nim with three heaps of {heaps[0]}, {heaps[1]} and {heaps[2]} stones. In a move one takes one or "
            "more stones from one heap; who takes the last stone of all wins. You begin. Win the game."
        ),
        start=Nim(heaps=heaps),
        solution=winning_calls(heaps),
    )


@qn.reward
def won(view: qn.EpisodeView[Nim]) -> qn.Score:
    return qn.Score(float(view.state.winner == "you"), f"the winner is {view.state.winner or 'not known'}")


env = qn.Environment(
    "nim_game",
    tasks=lambda split: qn.Tasks(COUNTS[split], lambda number: make(split, number)),
    harness=qn.ToolLoop(),
    verifier=qn.Verifier(won),
    state=Nim,
)
