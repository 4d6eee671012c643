"""An environment with held tools and a managed context meets the contract of all environments."""

from __future__ import annotations

from typing import Any

import quintain as qn
from quintain.harnesses import AgentLoop, Fold, Notes
from quintain.testing import EnvironmentContract
from tests.harnesses.agents import Library, done


class TestContract(EnvironmentContract):
    def environment(self) -> qn.Environment[Any]:
        solution = tuple(("look", {"page": page, "length": 400}) for page in range(12))
        task = qn.Task(id="t", prompt="Read.", start=Library(), solution=solution, answer="done")
        harness = AgentLoop(system="You read.", tools=(Notes(),), context=Fold(by=lambda prompt: "- read"), budget=900)
        return qn.Environment(
            "library", tasks=lambda split: [task], harness=harness, verifier=qn.Verifier(done), state=Library
        )
