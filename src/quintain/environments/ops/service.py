"""E: the environment of one service's subagent, to be rolled out and trained alone.

A task is one request of the solution of an incident. The report must hold the facts that were asked for; a request for
a repair must make it, and nothing else may change.
"""

from __future__ import annotations

import functools

import msgspec

import quintain as qn
from quintain.authoring import LEVELS, key_of, sound_call

from .description import Service, causes, digest
from .draft import Incident, Part, Truth
from .harness import Flat
from .hierarchy import system
from .state import Production
from .tasks import COUNTS
from .verifier import progress, repaired, share, untouched
from .worlds import ALONE


@qn.reward
def reported(outcome: qn.EpisodeView[Production]) -> qn.Score:
    """Scores the share of the facts that the answer holds."""
    truth: Truth = outcome.task.truth
    (part,) = truth.parts
    value = share(outcome.answer, part, outcome.task)
    return qn.Score(value, "" if value == 1.0 else f"the answer should name {', '.join(part.facts)} alone")


class ServiceRequest(Incident):
    """A request to one service in the making."""

    service: Service
    part: Part

    def choose(self, service: Service) -> None:
        """Chooses the request among the parts that the service has in the solution."""
        own = [part for part in self.parts if part.service == service]
        self.part = self.rng.choice(own)
        self.calls = list(self.part.calls)
        self.kind = ALONE[service]

    @property
    def prompt(self) -> str:
        return self.part.ask

    def truth(self) -> Truth:
        whole = super().truth()
        return msgspec.structs.replace(whole, parts=(msgspec.structs.replace(self.part, ask=""),), findings=())


def environment(service: Service) -> qn.Environment[Production]:
    """Returns the environment of one service."""
    asked = [
        name for name, cause in causes().items() if service in {"errors", "docs", *(leg.service for leg in cause.legs)}
    ]

    def make(split: str, index: int) -> qn.Task[Production]:
        name, level = asked[index % len(asked)], LEVELS[index // len(asked) % len(LEVELS)]
        case = ServiceRequest(key_of("ops", service, split, index), level)
        case.befall(name)
        case.choose(service)
        return case.task(f"{name}-{level}-{index}", answer=case.part.say, tags={"cause": name, "level": level})

    return qn.Environment(
        f"ops_{service}",
        tasks=lambda split: qn.Tasks(COUNTS[split], functools.partial(make, split)),
        harness=Flat(system(service), digest()),
        verifier=qn.Verifier(sound_call, progress, reported, repaired, untouched, combine="product"),
        state=ALONE[service],
        config=qn.Config(max_turns=20),
    )
