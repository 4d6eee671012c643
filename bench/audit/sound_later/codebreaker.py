"""Codebreaker: a hidden code of four colours, two counts after each guess, ten guesses."""

import hashlib
from collections import Counter
from typing import Annotated, Literal

import msgspec

import quintain as qn
from quintain.state import Rng

Colour = Literal["red", "green", "blue", "white", "black", "gold"]
COLOURS: tuple[Colour, ...] = ("red", "green", "blue", "white", "black", "gold")
Code = Annotated[list[Colour], msgspec.Meta(min_length=4, max_length=4)]
GUESSES = 10


class Guess(msgspec.Struct):
    code: list[Colour]
    right_place: int
    wrong_place: int


def compare(code: list[Colour], guess: list[Colour]) -> Guess:
    """Returns the counts of a guess; a peg of the code is counted once."""
    right = sum(one == other for one, other in zip(code, guess, strict=True))
    common = sum((Counter(code) & Counter(guess)).values())
    return Guess(list(guess), right, common - right)


class Codebreaker(qn.State):
    code: list[Colour]
    guesses: list[Guess] = []

    @qn.tool
    def guess(self, code: Code) -> Guess:
        """Guess the code; returns how many colours stand in the right place, and how many of the others only elsewhere.

        A colour may occur several times, in the code and in a guess; each peg of the code is counted once. The game
        ends with the right guess, or after ten guesses.

        Args:
            code: Four colours, from left to right.
        """
        if self.over():
            raise qn.ToolError("the game is over")
        self.guesses.append(compare(self.code, code))
        if self.over():
            self.finish("the game is over")
        return self.guesses[-1]

    @qn.tool
    def board(self) -> list[Guess]:
        """Read all guesses so far and their counts."""
        return self.guesses

    def over(self) -> bool:
        return len(self.guesses) == GUESSES or any(one.right_place == 4 for one in self.guesses)


def task(split: str, n: int) -> qn.Task[Codebreaker]:
    key = hashlib.blake2b(f"codebreaker/{split}/{n}".encode(), digest_size=16).digest()
    rng = Rng(key=key)
    code = [rng.choice(COLOURS) for _ in range(4)]
    hint = rng.choice([colour for colour in COLOURS if colour not in code])
    return qn.Task(
        id=f"{split}-{n}",
        prompt=f"Game {n} of the {split} series: find the hidden code of four colours in at most {GUESSES} guesses. "
        f"The colours are {', '.join(COLOURS)}; one may occur several times. {hint.capitalize()} does not occur.",
        start=Codebreaker(code=code),
        solution=(("guess", {"code": code}),),
    )


@qn.reward
def broken(view: qn.EpisodeView[Codebreaker]) -> qn.Score:
    won = any(one.code == view.state.code for one in view.state.guesses)
    return qn.Score(float(won), f"{len(view.state.guesses)} guesses")


env = qn.Environment(
    "codebreaker",
    tasks=lambda split: qn.Tasks(30, lambda n: task(split, n)),
    harness=qn.ToolLoop(),
    verifier=qn.Verifier(broken),
    state=Codebreaker,
    splits=("train", "test"),
)
