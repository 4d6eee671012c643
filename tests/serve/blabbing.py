"""An environment that says what it hides whenever it can: in exceptions of its tools and judge, and in reasons."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import quintain as qn
from quintain.errors import EpisodeError

TRUTH = "the-word-is-xyzzy"
SCRIPT = "you-are-a-grumpy-user"


@dataclass
class Sealed:
    """Data that only the judge knows."""

    word: str


class Safe(qn.State):
    """A safe with a word."""

    word: str = TRUTH
    said: str = ""

    @qn.tool
    def look(self) -> str:
        """Look at it."""
        return "It is shut."

    @qn.tool
    def shake(self) -> str:
        """Shake it, by which it breaks."""
        raise KeyError(self.word)

    @qn.tool
    def fall(self) -> str:
        """Let it fall, and say who is to blame."""
        raise EpisodeError(f"{self.word} is in it", component="S", kind="quintain:state_bug")

    @qn.tool
    async def hang(self) -> str:
        """Wait for it to open by itself."""
        await asyncio.Event().wait()
        return "?"

    @qn.tool
    def say(self, word: str) -> str:
        """Say a word to it, which ends the episode.

        Args:
            word: Which.
        """
        self.said = word
        self.finish("said")
        return "Click?"

    @qn.tool(roles=("user",))
    def hint(self) -> str:
        """Tell the word; not for agents."""
        return self.word


@qn.reward(level="step")
def near(effect: qn.StepView[Safe]) -> qn.Score:
    return qn.Score(0.5, f"wanted {effect.task.truth.word}")


@qn.reward
def right(outcome: qn.EpisodeView[Safe]) -> float:
    if outcome.state.said == "break":
        raise ValueError(f"{outcome.task!r}")
    return float(outcome.state.said == outcome.task.truth.word)


def tasks(split: str) -> list[qn.Task[Safe]]:
    return [
        qn.Task(
            id=f"{split}-safe",
            prompt="Open the safe.",
            start=Safe(),
            truth=Sealed(TRUTH),
            solution=(("say", {"word": TRUTH}),),
            roles={"user": SCRIPT},
        )
    ]


env = qn.Environment(
    "safe",
    tasks=tasks,
    harness=qn.ToolLoop(),
    verifier=qn.Verifier(near, right),
    state=Safe,
    config=qn.Config(tool_timeout_s=0.2),
)
