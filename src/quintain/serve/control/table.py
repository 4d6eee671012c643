"""The table of routes: requests are answered and the OpenAPI document is made from it."""

from __future__ import annotations

from starlette.responses import Response

from quintain.serve.episodes.actions import Change

from . import answers as a
from . import bodies as b
from . import discovery as d
from . import episodes as e
from . import metrics, openapi
from .routes import ApiCall, ApiRoute

EPISODES = "/v1/episodes"
ONE = f"{EPISODES}/{{id}}"
ENVIRONMENTS = "/v1/environments"
ENVIRONMENT = f"{ENVIRONMENTS}/{{environment}}"


async def get_openapi(call: ApiCall) -> Response:
    """Returns this document."""
    return Response(openapi.document(ROUTES, keyed=call.keyed), media_type="application/json")


_DONE = (404, 409, 410)
"""Statuses of routes of an episode: it is unknown to this caller, it is in another state, or it was closed meanwhile.
"""

ROUTES = (
    ApiRoute("GET", "/healthz", d.get_health, a.Health, role=""),
    ApiRoute("GET", "/readyz", d.get_readiness, a.Health, role=""),
    ApiRoute("GET", "/metrics", d.get_metrics, metrics.TYPE, role="admin"),
    ApiRoute("GET", "/v1/openapi.json", get_openapi, dict, role=""),
    ApiRoute("GET", ENVIRONMENTS, d.list_environments, a.EnvironmentList),
    ApiRoute("GET", ENVIRONMENT, d.get_environment, a.EnvironmentInfo, errors=(404,)),
    ApiRoute("GET", f"{ENVIRONMENT}/tasks", d.list_tasks, a.TaskPage, query=b.TasksQuery, errors=(404,)),
    ApiRoute("GET", EPISODES, d.list_episodes, a.EpisodePage, query=b.EpisodesQuery),
    ApiRoute(
        "POST",
        EPISODES,
        e.create_episode,
        a.Detail,
        body=b.Create,
        status=201,
        errors=_DONE,
        confides=True,
    ),
    ApiRoute(
        "POST",
        f"{EPISODES}/restore",
        e.restore,
        a.Detail,
        body=bytes,
        query=b.RestoreQuery,
        role="trainer",
        status=201,
        errors=_DONE,
        confides=True,
    ),
    ApiRoute("GET", ONE, e.get_episode, a.Detail, query=b.DetailQuery, errors=_DONE),
    ApiRoute("DELETE", ONE, e.delete_episode, None, status=204, errors=(404,)),
    ApiRoute("POST", f"{ONE}/calls", e.call_tool, a.ReplyResult, body=b.CallBody, errors=_DONE),
    ApiRoute("POST", f"{ONE}/answer", e.give_answer, a.ReplyResult, body=b.AnswerBody, errors=_DONE),
    ApiRoute("POST", f"{ONE}/replies", e.give_reply, a.ReplyResult, body=b.ReplyBody, errors=_DONE),
    ApiRoute("POST", f"{ONE}/step", e.make_step, a.ReplyResult, body=b.StepBody, role="trainer", errors=_DONE),
    ApiRoute("POST", f"{ONE}/join", e.join, a.OpenedThread, body=b.JoinBody, role="trainer", errors=_DONE),
    ApiRoute("POST", f"{ONE}/changes", e.change, a.Detail, body=list[Change], role="trainer", errors=_DONE),
    ApiRoute("POST", f"{ONE}/terminate", e.terminate, a.Detail, body=b.TerminateBody, errors=_DONE),
    ApiRoute("POST", f"{ONE}/verify", e.verify, a.Verdict, body=b.VerifyBody, errors=_DONE),
    ApiRoute("POST", f"{ONE}/snapshot", e.snapshot, bytes, role="trainer", errors=_DONE),
    ApiRoute("POST", f"{ONE}/fork", e.fork, a.Detail, role="trainer", status=201, errors=_DONE),
    ApiRoute("POST", f"{ONE}/replay", e.replay, a.ReplayResult, role="trainer", errors=_DONE),
    ApiRoute("GET", f"{ONE}/trace", e.get_trace, dict, role="trainer", errors=_DONE),
    ApiRoute("GET", f"{ONE}/digest", e.get_digest, a.StateDigest, role="trainer", errors=_DONE),
    ApiRoute("GET", f"{ONE}/journal", e.get_journal, a.CallLog, role="trainer", errors=_DONE),
)
