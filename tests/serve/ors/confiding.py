"""An environment whose tools and judge read what a caller has confided; `quintain serve .../confiding.py:env`."""

from __future__ import annotations

import asyncio
import hashlib

import quintain as qn
from quintain.serve import secret


class Desk(qn.State):
    """Nothing is kept here."""

    @qn.tool
    def idle(self) -> str:
        """Do nothing."""
        return "nothing"

    @qn.tool
    def read(self, of: str) -> str:
        """Name the secret without telling it.

        Args:
            of: Its name.
        """
        return named(secret(of))

    @qn.tool
    async def wait(self, of: str) -> str:
        """The same, after others had their turn.

        Args:
            of: Its name.
        """
        await asyncio.sleep(0.001)
        return await asyncio.to_thread(lambda: named(secret(of)))

    @qn.tool
    def tell(self, of: str) -> list[str | None]:
        """Tell the secret, which nobody should.

        Args:
            of: Its name.
        """
        return ["it is", secret(of)]

    @qn.tool
    def drop(self, of: str) -> str:
        """Break, and tell the secret by it.

        Args:
            of: Its name.
        """
        raise RuntimeError(f"bad key {secret(of)}")

    @qn.tool
    def leave(self) -> str:
        """End the episode."""
        self.finish("left")
        return "bye"


def named(value: str | None) -> str:
    return "none" if value is None else hashlib.sha256(value.encode()).hexdigest()[:8]


@qn.reward
async def judged(_outcome: qn.EpisodeView[Desk]) -> qn.Score:
    await asyncio.sleep(0)
    key = secret("JUDGE")
    return qn.Score(float(key is not None), f"asked with {key}")


@qn.reward(level="step")
def seen(effect: qn.StepView[Desk]) -> qn.Score:
    key = secret("KEY")
    return qn.Score(float(key is not None), f"{effect.step.call.name} seen with {key}")


env = qn.Environment(
    "confiding",
    tasks=lambda _split: [qn.Task(id="desk", prompt="Sit down.", start=Desk())],
    harness=qn.ToolLoop(),
    verifier=qn.Verifier(judged),
    state=Desk,
)

watched = qn.Environment(
    "watched",
    tasks=lambda _split: [qn.Task(id="desk", prompt="Sit down.", start=Desk())],
    harness=qn.ToolLoop(),
    verifier=qn.Verifier(judged, seen),
    state=Desk,
)
