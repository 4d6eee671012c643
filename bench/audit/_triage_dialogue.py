"""A counter where a guest books a seat by words: small enough that every mistake of the simulated user is known."""

from __future__ import annotations

import quintain as qn
from quintain import codec
from quintain.harness import Model, Request
from quintain.harnesses import Dialogue
from quintain.models import Cast
from quintain.state import Rng
from quintain.trace import Message, Reply, ToolCall

STOP = "###STOP###"
FAULTS = ("", "", "", "stops_early", "stops_at_once", "says_nothing", "tells_the_truth")


class Desk(qn.State):
    booked: dict[str, int] = {}

    @qn.tool
    def book(self, code: str, seats: int) -> str:
        """Book seats for a guest.

        Args:
            code: The guest's code, such as G-17.
            seats: How many.
        """
        if not code.startswith("G-"):
            raise qn.ToolError(f"{code!r} is not a code")
        self.booked[code] = seats
        return "booked"


@qn.reward
def booked_as_asked(outcome: qn.EpisodeView[Desk]) -> float:
    return float(outcome.state.booked == {outcome.task.truth["code"]: outcome.task.truth["seats"]})


def _task(split: str, n: int) -> qn.Task[Desk]:
    code, seats = f"G-{100 + n}", 1 + n % 5
    script = f"You want {seats + 10 * n} minutes of show. Your code is {code}. Tell it when you are asked."
    truth = {"code": code, "seats": seats, "voucher": f"VOUCHER-{9000 + n}"}
    return qn.Task(
        id=f"{split}-{n}",
        prompt="",
        start=Desk(),
        truth=truth,
        solution=(("book", {"code": code, "seats": seats}),),
        roles={"user": script},
    )


def desk() -> qn.Environment[Desk]:
    def tasks(split: str) -> qn.Tasks[Desk]:
        return qn.Tasks(1000, lambda n: _task(split, n))

    config = qn.Config(max_turns=12, gate_rate=None)
    parts = {"harness": Dialogue(), "verifier": qn.Verifier(booked_as_asked), "state": Desk, "config": config}
    return qn.Environment("desk", tasks=tasks, **parts)


class _Lines:
    """Says its lines in turn, and the last one again and again."""

    def __init__(self, *lines: str | tuple[str, int]) -> None:
        self._lines = list(lines)

    async def __call__(self, request: Request) -> Reply:
        line = self._lines.pop(0) if len(self._lines) > 1 else self._lines[0]
        if isinstance(line, str):
            return Reply(Message("assistant", line))
        call = ToolCall("c", "book", codec.text({"code": line[0], "seats": line[1]}))
        return Reply(Message("assistant", calls=(call,)))


def talk(task: qn.Task[Desk], rng: Rng) -> tuple[Model, str]:
    """Both actors of one episode, and the fault of the user; empty for none."""
    code, seats, n = task.truth["code"], task.truth["seats"], int(task.id.rpartition("-")[2])
    wish = f"I would like {seats} seats, for {seats + 10 * n} minutes."
    agents = {
        "good": _Lines("What is your code?", (code, seats), "It is booked."),
        "wrong": _Lines("What is your code?", (code, seats + 1), "It is booked."),
        "unhelpful": _Lines("I can only help with seats."),
        "liar": _Lines("What is your code?", "It is booked."),
    }
    fault, how = rng.choice(FAULTS), rng.choice(sorted(agents))
    users = {
        "": _Lines(wish, f"It is {code}.", STOP) if how != "unhelpful" else _Lines(wish, f"Then forget it. {STOP}"),
        "stops_early": _Lines(wish, f"Thank you. {STOP}"),
        "stops_at_once": _Lines(STOP),
        "says_nothing": _Lines(wish, "", STOP),
        "tells_the_truth": _Lines(f"{wish} The right voucher is {task.truth['voucher']}.", f"It is {code}.", STOP),
    }
    if fault == "stops_early" and how == "unhelpful":
        fault = ""  # there nothing was asked, so leaving is not a mistake
    return Cast(agent=agents[how], user=users[fault]), fault
