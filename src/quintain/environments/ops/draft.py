"""T: an incident while it is being written, and the truth about it."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from quintain import authoring
from quintain.authoring import Level
from quintain.task import Call, Task

from .acting import act
from .description import Leg, Service, actions, causes, decoys
from .goals import changes
from .scene import Breakdown, Scene
from .seeding import fill
from .state import Finding, OpenFailure, Production, Value
from .worlds import Ops, RoutedOps

DECOYS = {"easy": 1, "medium": 3, "hard": 5}
_FACT = re.compile(r"\[(.+?)\]")
_FELT = {
    "slow": "{one} answers slowly since about {time}",
    "failing": "{one} fails for many requests since about {time}",
    "stale": "data of {service} is out of date, since about {time}",
}
_HEARD = {
    "slow": "The pages take ages since a while.",
    "failing": "I only get error messages today.",
    "stale": "What I see is not up to date.",
}
_GUESSES = ("the deploy right before it", "too little memory", "the network", "the database", "a vendor")
_ORDER = "Find the root cause, repair it as its runbook says, and report it."


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the solution: a request to one service, its calls, the report, the facts in it, and wrong ones."""

    service: Service
    ask: str
    calls: tuple[Call, ...]
    say: str
    facts: tuple[str, ...]
    wrong: tuple[str, ...] = ()
    repairs: bool = False


class Truth(msgspec.Struct, frozen=True, kw_only=True):
    """Truth of a task.

    Attributes:
        findings: The root causes.
        repair: Calls that repair them; what they change is wanted, and nothing else.
        parts: The solution by parts, as an orchestrator gives them to subagents.
        culprits: Words that show, in an observation, that the cause was seen.
    """

    findings: tuple[Finding, ...]
    repair: tuple[Call, ...]
    parts: tuple[Part, ...]
    culprits: tuple[str, ...]


def part_of(leg: Leg, names: dict[str, Any]) -> Part:
    """Returns a part of the solution with the names of a failure."""
    said = fill(leg.say, names)
    marked = [one.split("|") for one in _FACT.findall(said)]
    return Part(
        service=leg.service,
        ask=fill(leg.ask, names),
        calls=tuple((tool, fill(arguments, names)) for tool, arguments in leg.calls),
        say=_FACT.sub(lambda one: one[1].partition("|")[0], said),
        facts=tuple(fact for fact, *_ in marked),
        wrong=tuple(other for _, *others in marked for other in others),
        repairs=leg.repairs,
    )


class Incident(authoring.Draft[Production]):
    """An incident in the making.

    Attributes:
        kind: Class of the world.
        scene: The production with its failures.
        parts: The solution.
    """

    kind: type[Production] = Ops

    def __init__(self, key: bytes, level: Level) -> None:
        super().__init__(key, level)
        self.scene = Scene(self.rng)
        self.parts: list[Part] = []
        self._guess = self.rng.choice(_GUESSES)

    def befall(self, name: str) -> None:
        """Lets a root cause befall the production; at the hard level a second one, of another kind, with it."""
        chosen = [name]
        if self.level == "hard":
            chosen.append(self.rng.choice([other for other in causes() if other != name]))
        taken: set[str] = set()
        for one in chosen:
            alerts = ("service", "upstream") if self.level == "easy" else ("upstream",)
            failure = self.scene.fail(one, causes()[one], alerts=alerts, taken=taken)
            taken |= {failure.names["service"], failure.names["upstream"]}
        first = self.scene.failures[0]
        # A deploy of the same service would lie between the harmful one and its rollback.
        is_same_fine = self.level == "hard" and first.cause.commit is None
        usable = [name for name, one in decoys().items() if one.at_service == "other" or is_same_fine]
        for decoy in self.rng.sample(usable, DECOYS[self.level]):
            self.scene.distract(decoys()[decoy], first, taken=taken)
        self._solve()

    def _solve(self) -> None:
        failures = self.scene.failures
        firing = [
            f"[{name}] on [{row['service']}]"
            for name, row in self.scene.rows["alerts"].items()
            if row["status"] == "firing"
        ]
        first = Leg(
            service="errors",
            ask="Which alerts are firing, since when, and what do they say?",
            calls=(("errors_list_alerts", {"status": "firing"}),),
            say=f"Alerts are firing: {', '.join(firing)}.",
        )
        self.parts.append(part_of(first, {}))
        for failure in failures:
            seen = [leg for leg in failure.cause.legs if not leg.repairs]
            repair = [leg for leg in failure.cause.legs if leg.repairs]
            before = [*([] if self.level == "easy" else _above(failure)), *_database(failure)]
            self.parts += [part_of(leg, failure.names) for leg in (*before, *seen, _runbook(failure), *repair)]
        for part in self.parts:
            for tool, arguments in part.calls:
                self.play(tool, **arguments)
        self.play("report", findings=[msgspec.to_builtins(finding) for finding in self.findings])

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings of a right report."""
        return tuple(
            Finding(one.name, one.names["service"], fill(one.cause.culprit, one.names)) for one in self.scene.failures
        )

    @property
    def prompt(self) -> str:
        texts: list[str] = []
        for failure in self.scene.failures:
            cause, names = failure.cause, failure.names
            one = names["service" if self.level == "easy" else "upstream"]
            texts.append(_FELT[cause.symptom].format(one=one, **names))
        lines = [f"Incident: {'; '.join(texts)}."]
        if self.level == "hard":
            lines = [f"A customer writes: {_HEARD[failure.cause.symptom]!r}" for failure in self.scene.failures] + lines
            lines.append(f"A colleague suspects {self._guess}. There may be several root causes.")
        return "\n".join([*lines, _ORDER])

    def truth(self) -> Truth:
        repair = tuple(call for call in self.calls if call[0] in actions())
        culprits = tuple(finding.culprit for finding in self.findings)
        return Truth(findings=self.findings, repair=repair, parts=tuple(self.parts), culprits=culprits)

    def world(self) -> Production:
        """Builds the start state, and finds out what cures each failure by playing its repair."""
        scene = self.scene
        tables: dict[str, Any] = scene.tables()
        world = self.kind(**tables, salt=self.key.hex(), shifts=scene.shifts, logs=scene.logs)
        world.clock.now = scene.now
        for failure in scene.failures:
            calls = [call for part in self._repairs(failure) for call in part.calls]
            cure = [Value(*place, value) for place, value in changes(world, played(world, calls)).items()]
            world.ills[failure.name] = OpenFailure(cure, failure.heals)
        return world

    def _repairs(self, failure: Breakdown) -> list[Part]:
        return [part_of(leg, failure.names) for leg in failure.cause.legs if leg.repairs]


class RoutedIncident(Incident):
    """Draft of the same incident for an orchestrator, whose own calls alone solve nothing."""

    kind = RoutedOps

    def task(self, id: str, *, answer: str, tags: dict[str, str]) -> Task[Production]:
        return msgspec.structs.replace(super().task(id, answer=answer, tags=tags), solution=None)


def played(world: Production, calls: list[Call] | tuple[Call, ...]) -> Production:
    """Returns a copy of a world in which the changing ones of some calls were made."""
    copy = world.copy()
    for tool, arguments in calls:
        if tool in actions():
            act(copy, tool, arguments)
    return copy


def _above(failure: Breakdown) -> list[Leg]:
    """Returns how one comes from the caller that raised the alert to the service that failed."""
    symptom, names = failure.cause.symptom, failure.names
    if symptom == "stale" or names["upstream"] == names["service"]:
        return []
    calls = (("errors_search_logs", {"service": "{upstream}", "level": "WARN"}),)
    say = f"[{{service}}] {'[took] too long' if symptom == 'slow' else 'answers with [status 503]'}."
    return [Leg(service="errors", ask="What do the logs of {upstream} warn about?", calls=calls, say=say)]


def _database(failure: Breakdown) -> list[Leg]:
    """Returns how one learns which database a service has."""
    calls = (("deployments_get_service", {"service": "{service}"}),)
    ask = "Which database does {service} use, and which team owns it?"
    say = "It uses [{database}] and belongs to team [{team}]."
    leg = Leg(service="deployments", ask=ask, calls=calls, say=say)
    return [leg] if "database" in failure.cause.needs else []


def _runbook(failure: Breakdown) -> Leg:
    page = f"runbook/{failure.name}"
    calls = (("docs_get_page", {"page": page}),)
    ask = f"What does the page {page} say about the repair, and which tool does it name?"
    return Leg(service="docs", ask=ask, calls=calls, say=f"{failure.cause.runbook} Tool: [{failure.cause.tool}]")
