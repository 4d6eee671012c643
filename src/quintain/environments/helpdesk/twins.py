"""The help desk with one planted bug, one for each class; see `quintain.environments.twins`."""

from __future__ import annotations

import math
from typing import ClassVar

import msgspec

import quintain as qn
from quintain.environments.twins import in_place_of, poisoned, verdict
from quintain.resources.web import HttpRequest, HttpResponse
from quintain.verifier import Criterion

from .effects import Effect
from .environment import env as sound
from .harness import harness
from .state import Helpdesk
from .verifier import changed

Outcome = qn.EpisodeView[Helpdesk]
Query = dict[str, str]


class CachedDesk(Helpdesk):
    """Comments are read through a cache that no write clears."""

    cache: dict[str, str] = msgspec.field(default_factory=dict[str, str])

    @in_place_of(Helpdesk.list_comments)
    def list_comments(self, *, id: int, query: Query | None = None) -> str:
        return self.cache.setdefault(f"{id} {query}", Helpdesk.list_comments(self, id=id, query=query or {}))


class IndexedDesk(Helpdesk):
    """The class keeps the hits of searches until a write, so the next episode gets those of this one."""

    hits: ClassVar[dict[str, str]] = {}

    @in_place_of(Helpdesk.search)
    def search(self, *, query: Query | None = None) -> str:
        return self.hits.setdefault(f"{query}", Helpdesk.search(self, query=query or {}))

    def respond(self, asked: HttpRequest) -> HttpResponse:
        if asked.method != "GET":
            self.hits.clear()
        return super().respond(asked)


class PatientDesk(Helpdesk):
    """A search that the product refuses, for too many requests, finds nothing."""

    @in_place_of(Helpdesk.search)
    def search(self, *, query: Query | None = None) -> str:
        found: str = Helpdesk.search(self, query=query or {})
        return '200\n{"results":[],"next_page":null,"previous_page":null,"count":0}' if found[:3] == "429" else found


@qn.reward
def _called(outcome: Outcome) -> qn.Score:
    """Counts the changes as made if each tool of the solution was called, whatever the arguments and the answers."""
    made = {step.call.name for turn in outcome.trace.turns for step in turn.steps}
    return qn.Score(float({name for name, _ in outcome.task.solution or ()} <= made))


@qn.reward
def _solved(outcome: Outcome) -> qn.Score:
    """Counts all changes as made if the tickets have the status that is wanted."""
    start, goals = outcome.task.world(), outcome.task.truth.goals
    statuses = [one for one in goals if isinstance(one, Effect) and one.field == "status"]
    if statuses and not any(one.missing(outcome.state, start) for one in statuses):
        return qn.Score(1.0)
    return verdict(changed, outcome)


@qn.reward
def _stretched(outcome: Outcome) -> qn.Score:
    """Multiplies the share of the changes by 1.5 and clips it, so two of three are paid in full."""
    score = verdict(changed, outcome)
    return score if score.value is None else qn.Score(min(1.0, 1.5 * math.sqrt(score.value)), score.reason)


def _complete(task: qn.Task[Helpdesk], world: Helpdesk) -> None:
    """Gives a type to all tickets but those of the task, so that a gap marks the task's."""
    ours = ", ".join(map(str, task.truth.tickets)) or "0"
    world.db.execute(f"UPDATE zd_tickets SET type = 'question' WHERE type IS NULL AND id NOT IN ({ours})")


def _as_changed(criterion: Criterion[Helpdesk]) -> Criterion[Helpdesk]:
    return msgspec.structs.replace(criterion, name=changed.name)


TWINS = {
    "stale_cache": poisoned(sound, "stale_cache", state=CachedDesk),
    "reward_hack": poisoned(sound, "reward_hack", criterion=_as_changed(_called)),
    "false_resolution": poisoned(sound, "false_resolution", criterion=_as_changed(_solved)),
    "silent_default": poisoned(sound, "silent_default", state=PatientDesk),
    "reset_leak": poisoned(sound, "reset_leak", state=IndexedDesk),
    "reward_clipping": poisoned(sound, "reward_clipping", criterion=_as_changed(_stretched)),
    "data_realism": poisoned(sound, "data_realism", spoil=_complete),
    # The introduction names a tool that does not exist.
    "action_drift": poisoned(
        sound, "action_drift", harness=qn.ToolLoop(system=harness.system.replace("search_articles", "find_articles"))
    ),
}
"""Class of bug to the twin."""
