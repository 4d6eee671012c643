"""Must be clean under mypy strict and pyright strict; what an author writes keeps its types all the way through."""

from typing import assert_type

import quintain as qn
from quintain.judges import numeric
from quintain.tasks import Question, from_rows


class Shelf(qn.State):
    """A part: usable alone, or inside a shop."""

    lamps: int = 0

    @qn.tool(reads=("lamps",), writes=(), order="id desc", unit={"lamps": "pieces"}, filters=())
    def count(self) -> int:
        """Count the lamps."""
        return self.lamps


class Shop(qn.State):
    shelf: Shelf
    sold: dict[str, int] = {}

    @qn.tool
    async def sell(self, customer: str, lamps: int = 1) -> str:
        """Sell lamps.

        Args:
            customer: Who buys.
            lamps: How many.
        """
        if lamps > self.shelf.count():
            raise qn.ToolError("not enough lamps")
        self.shelf.lamps -= lamps
        self.sold[customer] = self.sold.get(customer, 0) + lamps
        return self.new_id("S")

    @qn.tool(roles=("user",))
    def complain(self, text: str) -> None:
        """Complain.

        Args:
            text: About what.
        """
        self.finish(text)


@qn.reward
def sold_exactly(outcome: qn.EpisodeView[Shop]) -> float:
    assert_type(outcome.state, Shop)
    assert_type(outcome.task, qn.Task[Shop])
    return float(outcome.state.sold == outcome.task.truth)


@qn.reward(weight=0.5, low=-1)
async def judged_elsewhere(outcome: qn.EpisodeView[Shop]) -> float:
    return float(outcome.state.shelf.lamps)


@qn.reward(level="turn", weight=0.1)
def no_error(transition: qn.TurnView[Shop]) -> float:
    assert_type(transition.before, Shop)
    return float(not any(step.is_error for step in transition.turn.steps))


@qn.reward(level="step", weight=0.1)
def no_waste(effect: qn.StepView[Shop]) -> float:
    return float(effect.before.sold != effect.after.sold)


@qn.phase()
def opened(transition: qn.TurnView[Shop]) -> bool:
    return bool(transition.after.sold)


@qn.phase(after="opened")
def emptied(transition: qn.TurnView[Shop]) -> bool:
    return not transition.after.shelf.lamps


def tasks(split: str) -> list[qn.Task[Shop]]:
    start = Shop(shelf=Shelf(lamps=3))
    return [qn.Task(id=f"{split}-1", prompt="Sell Ann a lamp.", start=start, truth={"Ann": 1})]


env = qn.Environment(
    "shop",
    tasks=tasks,
    harness=qn.ToolLoop(system="You sell lamps."),
    verifier=qn.Verifier(sold_exactly, judged_elsewhere, no_error, no_waste, opened, emptied),
    state=Shop,
    config=qn.Config(max_turns=8),
)
assert_type(env, qn.Environment[Shop])
assert_type(env.tasks("test")[0], qn.Task[Shop])
assert_type(Shop(shelf=Shelf()).copy(), Shop)


def close(answer: str, truth: int) -> float:
    return 1 / (1 + abs(int(answer) - truth))


rows = [{"question": "1 + 1?", "answer": 2}]
assert_type(from_rows("sums", rows, scorer=close), qn.Environment[Question])
assert_type(from_rows("sums", {"train": rows, "test": rows}, scorer=numeric()), qn.Environment[Question])
