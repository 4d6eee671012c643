"""Nim on three heaps against an opponent whose rule is known; the one who takes the last token wins."""

import functools
from typing import Annotated, Literal

import msgspec

import quintain as qn

HEAPS = ("A", "B", "C")
Sizes = tuple[int, int, int]
Move = tuple[int, int]  # Index of a heap, tokens taken.

POSITIONS: list[Sizes] = [(1, 2, 4), (3, 4, 5), (2, 2, 3), (5, 1, 1), (4, 4, 4), (6, 5, 2), (0, 3, 5), (7, 3, 1)]


def take(sizes: Sizes, move: Move) -> Sizes:
    left = list(sizes)
    left[move[0]] -= move[1]
    return (left[0], left[1], left[2])


def opponent(sizes: Sizes) -> Move:
    """Returns the reply: the one that makes the XOR of all heaps 0 if there is one, else 1 token of the largest heap.

    The first heap in the order A, B, C is preferred.
    """
    total = functools.reduce(lambda one, other: one ^ other, sizes)
    for heap, size in enumerate(sizes):
        if total and size ^ total < size:
            return heap, size - (size ^ total)
    return max(range(3), key=lambda heap: (sizes[heap], -heap)), 1


def winning(sizes: Sizes) -> list[Move]:
    """Returns moves with which the agent wins: after each one the XOR is 0."""
    moves: list[Move] = []
    while any(sizes):
        moves.append(opponent(sizes))  # The opponent's own rule is perfect where a win exists.
        sizes = take(sizes, moves[-1])
        if any(sizes):
            sizes = take(sizes, opponent(sizes))
    return moves


class Nim(qn.State):
    sizes: Sizes
    log: list[str] = []
    winner: Literal["", "agent", "opponent"] = ""

    @qn.tool
    def look(self) -> dict[str, int]:
        """Read how many tokens each heap holds. It is your turn as long as the game lasts."""
        return dict(zip(HEAPS, self.sizes, strict=True))

    @qn.tool
    def history(self) -> list[str]:
        """Read all moves so far, yours and the opponent's."""
        return list(self.log)

    @qn.tool
    def play(self, heap: Literal["A", "B", "C"], tokens: Annotated[int, msgspec.Meta(ge=1, le=9)]) -> str:
        """Take tokens from one heap; the opponent replies at once. Taking the last token of all wins and ends the game.

        Args:
            heap: The heap.
            tokens: How many, at most as many as the heap holds.
        """
        if self.winner:
            raise qn.ToolError(f"the game is over; {self.winner} has won")
        if tokens > self.sizes[HEAPS.index(heap)]:
            raise qn.ToolError(f"heap {heap} holds {self.sizes[HEAPS.index(heap)]} tokens")
        mine = self._move("agent", (HEAPS.index(heap), tokens))
        if not any(self.sizes):
            return f"{mine}. You have won."
        reply = self._move("opponent", opponent(self.sizes))
        return f"{mine}. {reply}. " + (f"Left: {self.look()}" if any(self.sizes) else "The opponent has won.")

    def _move(self, who: Literal["agent", "opponent"], move: Move) -> str:
        self.sizes = take(self.sizes, move)
        self.log.append(f"{who} took {move[1]} from {HEAPS[move[0]]}")
        if not any(self.sizes):
            self.winner = who
            self.finish(f"{who} won")
        return self.log[-1]


def tasks(split: str) -> list[qn.Task[Nim]]:
    made: list[qn.Task[Nim]] = []
    for n, sizes in enumerate(POSITIONS, 1):
        shown = ", ".join(f"{heap} {size}" for heap, size in zip(HEAPS, sizes, strict=True))
        prompt = (
            f"Win a game of Nim: heaps {shown}. You begin. A move takes one or more tokens from one heap; the one "
            "who takes the last token of all wins. The opponent plays perfectly, but you can win. There is one game."
        )
        calls = tuple(("play", {"heap": HEAPS[heap], "tokens": count}) for heap, count in winning(sizes))
        made.append(qn.Task(id=f"{split}-{n}", prompt=prompt, start=Nim(sizes=sizes), solution=calls))
    return made


@qn.reward
def won(view: qn.EpisodeView[Nim]) -> qn.Score:
    return qn.Score(float(view.state.winner == "agent"), f"winner: {view.state.winner or 'none yet'}")


env = qn.Environment("nim", tasks=tasks, harness=qn.ToolLoop(), verifier=qn.Verifier(won), state=Nim, splits=("test",))
