"""Everything that can be asked of the control plane."""

from __future__ import annotations

from quintain.serve.asgi import JSON
from quintain.serve.episodes.actions import Change

from . import asking, metrics, openapi, wire
from . import discovery as d
from . import episodes as e
from .once import Said
from .routes import Asked, Route, Router

EPISODES = "/v1/episodes"
ONE = f"{EPISODES}/{{id}}"
ENVIRONMENTS = "/v1/environments"
ENVIRONMENT = f"{ENVIRONMENTS}/{{environment}}"


async def get_openapi(asked: Asked) -> Said:
    """This document."""
    return Said(200, openapi.document(ROUTER.routes, keyed=asked.keyed), (JSON,))


_DONE = (404, 409, 410)
"""There is no such episode for this caller; what was asked does not go with how it stands; it was closed meanwhile."""

ROUTER = Router(
    (
        Route("GET", "/healthz", d.get_health, wire.Health, role=""),
        Route("GET", "/readyz", d.get_readiness, wire.Health, role=""),
        Route("GET", "/metrics", d.get_metrics, metrics.TYPE, role="admin"),
        Route("GET", "/v1/openapi.json", get_openapi, dict, role=""),
        Route("GET", ENVIRONMENTS, d.list_environments, wire.EnvironmentsTold),
        Route("GET", ENVIRONMENT, d.get_environment, wire.EnvironmentTold, errors=(404,)),
        Route("GET", f"{ENVIRONMENT}/tasks", d.list_tasks, wire.TasksTold, query=asking.TasksAsked, errors=(404,)),
        Route("GET", EPISODES, d.list_episodes, wire.EpisodesTold, query=asking.EpisodesAsked),
        Route(
            "POST",
            EPISODES,
            e.create_episode,
            wire.Detail,
            body=asking.Create,
            status=201,
            errors=_DONE,
            confides=True,
        ),
        Route(
            "POST",
            f"{EPISODES}/restore",
            e.restore,
            wire.Detail,
            body=bytes,
            query=asking.RestoreAsked,
            role="trainer",
            status=201,
            errors=_DONE,
            confides=True,
        ),
        Route("GET", ONE, e.get_episode, wire.Detail, query=asking.DetailAsked, errors=_DONE),
        Route("DELETE", ONE, e.delete_episode, None, status=204, errors=(404,)),
        Route("POST", f"{ONE}/calls", e.call_tool, wire.Played, body=asking.CallAsked, errors=_DONE),
        Route("POST", f"{ONE}/answer", e.give_answer, wire.Played, body=asking.AnswerAsked, errors=_DONE),
        Route("POST", f"{ONE}/replies", e.give_reply, wire.Played, body=asking.ReplyAsked, errors=_DONE),
        Route("POST", f"{ONE}/step", e.make_step, wire.Played, body=asking.StepAsked, role="trainer", errors=_DONE),
        Route("POST", f"{ONE}/join", e.join, wire.Joined, body=asking.JoinAsked, role="trainer", errors=_DONE),
        Route("POST", f"{ONE}/changes", e.change, wire.Detail, body=list[Change], role="trainer", errors=_DONE),
        Route("POST", f"{ONE}/terminate", e.terminate, wire.Detail, body=asking.TerminateAsked, errors=_DONE),
        Route("POST", f"{ONE}/verify", e.verify, wire.Verdict, body=asking.VerifyAsked, errors=_DONE),
        Route("POST", f"{ONE}/snapshot", e.snapshot, bytes, role="trainer", errors=_DONE),
        Route("POST", f"{ONE}/fork", e.fork, wire.Detail, role="trainer", status=201, errors=_DONE),
        Route("POST", f"{ONE}/replay", e.replay, wire.Replayed, role="trainer", errors=_DONE),
        Route("GET", f"{ONE}/trace", e.get_trace, dict, role="trainer", errors=_DONE),
        Route("GET", f"{ONE}/digest", e.get_digest, wire.DigestTold, role="trainer", errors=_DONE),
        Route("GET", f"{ONE}/journal", e.get_journal, wire.JournalTold, role="trainer", errors=_DONE),
    )
)
