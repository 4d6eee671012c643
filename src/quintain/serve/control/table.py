"""The table of routes: requests are answered and the OpenAPI document is made from it."""

from __future__ import annotations

import functools

from starlette.responses import Response

from quintain.serve.episodes.actions import Change

from . import answers as a
from . import bodies as b
from . import discovery as d
from . import episodes as e
from . import metrics, openapi
from .routes import ApiCall, ApiRoute

EPISODES = "/v1/episodes"
RESTORE = f"{EPISODES}/restore"
ONE = f"{EPISODES}/{{id}}"
ENVIRONMENTS = "/v1/environments"
ENVIRONMENT = f"{ENVIRONMENTS}/{{environment}}"


async def get_openapi(call: ApiCall) -> Response:
    """Returns this document."""
    return Response(openapi.document(ROUTES, keyed=call.keyed), media_type="application/json")


_of = functools.partial(ApiRoute, errors=(404, 409, 410))
"""Row of an episode, which may be unknown to the caller, in another state, or closed meanwhile."""

ROUTES = (
    ApiRoute("GET", "/healthz", d.get_health, a.Health, role=""),
    ApiRoute("GET", "/readyz", d.get_readiness, a.Health, role=""),
    ApiRoute("GET", "/metrics", d.get_metrics, metrics.TYPE, role="admin"),
    ApiRoute("GET", "/v1/openapi.json", get_openapi, dict, role=""),
    ApiRoute("GET", ENVIRONMENTS, d.list_environments, a.EnvironmentList),
    ApiRoute("GET", ENVIRONMENT, d.get_environment, a.EnvironmentInfo, errors=(404,)),
    ApiRoute("GET", f"{ENVIRONMENT}/tasks", d.list_tasks, a.TaskPage, query=b.TasksQuery, errors=(404,)),
    ApiRoute("GET", EPISODES, d.list_episodes, a.EpisodePage, query=b.EpisodesQuery),
    _of("POST", EPISODES, e.create_episode, a.Detail, body=b.Create, status=201, confides=True),
    _of(
        "POST",
        RESTORE,
        e.restore,
        a.Detail,
        body=bytes,
        query=b.RestoreQuery,
        role="trainer",
        status=201,
        confides=True,
    ),
    _of("GET", ONE, e.get_episode, a.Detail, query=b.DetailQuery),
    ApiRoute("DELETE", ONE, e.delete_episode, None, status=204, errors=(404,)),
    _of("POST", f"{ONE}/calls", e.call_tool, a.ReplyResult, body=b.CallBody),
    _of("POST", f"{ONE}/answer", e.give_answer, a.ReplyResult, body=b.AnswerBody),
    _of("POST", f"{ONE}/replies", e.give_reply, a.ReplyResult, body=b.ReplyBody),
    _of("POST", f"{ONE}/step", e.make_step, a.ReplyResult, body=b.StepBody, role="trainer"),
    _of("POST", f"{ONE}/join", e.join, a.OpenedThread, body=b.JoinBody, role="trainer"),
    _of("POST", f"{ONE}/changes", e.change, a.Detail, body=list[Change], role="trainer"),
    _of("POST", f"{ONE}/terminate", e.terminate, a.Detail, body=b.TerminateBody),
    _of("POST", f"{ONE}/verify", e.verify, a.Verdict, body=b.VerifyBody),
    _of("POST", f"{ONE}/snapshot", e.snapshot, bytes, role="trainer"),
    _of("POST", f"{ONE}/fork", e.fork, a.Detail, role="trainer", status=201),
    _of("POST", f"{ONE}/replay", e.replay, a.ReplayResult, role="trainer"),
    _of("GET", f"{ONE}/trace", e.get_trace, dict, role="trainer"),
    _of("GET", f"{ONE}/digest", e.get_digest, a.StateDigest, role="trainer"),
    _of("GET", f"{ONE}/journal", e.get_journal, a.CallLog, role="trainer"),
)
