"""A conversation that the tests serve: `quintain serve tests/serve/control/talk.py:talk`.

The user knows a number and may look at the clock; the agent has to ask for it, and to write it down.
"""

from __future__ import annotations

import time

import msgspec

import quintain as qn
from quintain.harness import Model, Request, Session
from quintain.harnesses import Dialogue
from quintain.models import Fixed
from quintain.tools import Tool
from quintain.trace import Message, Reply


class Desk(qn.State):
    """A desk with a notebook and a clock."""

    note: int | None = None
    looks: int = 0

    @qn.tool
    def write(self, number: int) -> str:
        """Write a number down.

        Args:
            number: It.
        """
        self.note = number
        return "written"

    @qn.tool(roles=("user",))
    def look(self) -> str:
        """Look at the clock."""
        self.looks += 1
        return f"it is {self.rng.below(24)} o'clock"

    @qn.tool
    def drop(self) -> str:
        """Drop the notebook, by mistake."""
        raise RuntimeError("it fell into the sea")


@qn.reward
def noted(outcome: qn.EpisodeView[Desk]) -> qn.Score:
    """Whether the number that the user named was written down."""
    return qn.Score(float(outcome.state.note == outcome.task.truth), f"it was {outcome.task.truth}")


@qn.reward(level="step")
def in_time(effect: qn.StepView[Desk]) -> float:
    """Whether nobody had looked at the clock yet."""
    return float(effect.after.looks == 0)


def tasks(split: str) -> list[qn.Task[Desk]]:
    return [
        qn.Task(
            id=f"{split}-{number}",
            prompt="",
            start=Desk(),
            truth=number,
            roles={"user": f"Your number is {number}. Tell it when you are asked."},
            tags={"parity": "odd" if number % 2 else "even"},
        )
        for number in range(20)
    ]


talk = qn.Environment(
    "talk",
    tasks=tasks,
    harness=Dialogue(system="Ask for the number.", user_system="You are a client.", opening="Good day."),
    verifier=qn.Verifier(noted, in_time),
    state=Desk,
    config=qn.Config(max_turns=12),
)


async def _nod(request: Request) -> Reply:
    return Reply(Message("assistant", "Hm."))


client = Fixed(_nod, "client")
"""A user who tells nothing."""

# --- shift: one day of three tasks, each in the world that the one before left ---


class Till(qn.State):
    """A till that is not emptied between customers."""

    coins: int = 0

    @qn.tool
    def take(self, coins: int) -> str:
        """Take coins.

        Args:
            coins: How many.
        """
        self.coins += coins
        return f"{self.coins} in the till"


@qn.reward
def filled(outcome: qn.EpisodeView[Till]) -> float:
    return float(outcome.state.coins > outcome.start.coins)


def customers(split: str) -> list[qn.Task[Till]]:
    return [qn.Task(id=f"customer-{n}", prompt=f"Take {n} coins.", start=Till(), day="monday") for n in (1, 2, 3)]


shift = qn.Environment(
    "shift", tasks=customers, harness=qn.ToolLoop(), verifier=qn.Verifier(filled), state=Till, splits=("test",)
)

# --- hesitant: a harness that takes its time before it asks anything ---


class Hesitant(msgspec.Struct, frozen=True):
    """A tool loop that begins late."""

    async def play(self, session: Session, model: Model) -> None:
        time.sleep(0.2)  # noqa: ASYNC251  # Such harnesses are what is tested.
        await qn.ToolLoop().play(session, model)


hesitant = qn.Environment(
    "hesitant", tasks=customers, harness=Hesitant(), verifier=qn.Verifier(filled), state=Till, splits=("test",)
)

# --- offering: a harness that offers a tool which its environment does not list ---

NOD = Tool(
    name="nod",
    description="Nod to the customer.",
    parameters={"type": "object", "properties": {"times": {"type": "integer"}}},
    roles=("agent",),
    arguments=msgspec.Struct,
    path=(),
)


class Offering(msgspec.Struct, frozen=True):
    """One turn with one more tool, as a solver of Inspect offers them."""

    async def play(self, session: Session, model: Model) -> None:
        request = session.request()
        await session.step(await model(msgspec.structs.replace(request, tools=(*request.tools, NOD))))
        session.terminate("one turn")


offering = qn.Environment(
    "offering", tasks=customers, harness=Offering(), verifier=qn.Verifier(filled), state=Till, splits=("test",)
)
