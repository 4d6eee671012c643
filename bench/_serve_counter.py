"""The environment that bench/serve.py serves: a number that a tool counts up, for as long as one wants."""

from __future__ import annotations

import quintain as qn


class Count(qn.State):
    """A number."""

    value: int = 0

    @qn.tool
    def add(self) -> int:
        """Count one up."""
        self.value += 1
        return self.value


@qn.reward
def counted(outcome: qn.EpisodeView[Count]) -> float:
    """1 when the number was told."""
    return float(outcome.answer == str(outcome.state.value))


counter = qn.Environment(
    "counter",
    tasks=lambda split: [qn.Task(id=f"{split}-{n}", prompt="Count up.", start=Count()) for n in range(1000)],
    harness=qn.ToolLoop(),
    verifier=qn.Verifier(counted),
    state=Count,
    config=qn.Config(max_turns=1_000_000),
)
