"""What the control plane says: plain data, of which the OpenAPI document is made too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from quintain.config import Config
from quintain.environment import Environment
from quintain.errors import Failure
from quintain.harness import Request
from quintain.trace import Content, End, Level, Message, Reward, Step, Turn
from quintain.verifier import Criterion


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """What went wrong (RFC 9457)."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str


class ToolInfo(msgspec.Struct, frozen=True):
    """A tool, its arguments as a JSON schema."""

    name: str
    description: str
    parameters: dict[str, Any]
    roles: tuple[str, ...]


class CriterionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What judges, without how."""

    name: str
    level: Level
    weight: float
    low: float
    high: float
    normalize: bool
    after: str | None

    @classmethod
    def of(cls, one: Criterion[Any]) -> CriterionInfo:
        return cls(**{name: getattr(one, name) for name in cls.__struct_fields__})


class EnvironmentInfo(msgspec.Struct, frozen=True, kw_only=True):
    """An environment, but for its tasks and its code.

    Attributes:
        idle_s: Seconds without a request after which an episode is closed.
    """

    name: str
    splits: tuple[str, ...]
    fingerprint: str
    tools_digest: str
    tools: tuple[ToolInfo, ...]
    criteria: tuple[CriterionInfo, ...]
    combine: Literal["sum", "product"]
    config: Config
    idle_s: float

    @classmethod
    def of(cls, env: Environment[Any], *, everything: bool, idle_s: float) -> EnvironmentInfo:
        """What is told of an environment; the tools of other roles only where everything may be known."""
        tools = env.tools.values() if everything else env.tools_of("agent")
        return cls(
            name=env.name,
            splits=env.splits,
            fingerprint=env.fingerprint,
            tools_digest=env.tools_digest,
            tools=tuple(ToolInfo(t.name, t.description, t.parameters, t.roles) for t in tools),
            criteria=tuple(map(CriterionInfo.of, env.verifier.criteria)),
            combine=env.verifier.combine,
            config=env.config,
            idle_s=idle_s,
        )


class EnvironmentList(msgspec.Struct, frozen=True):
    """Everything that is served, the default first."""

    environments: tuple[EnvironmentInfo, ...]


class TaskInfo(msgspec.Struct, frozen=True):
    """A task's name; nothing that stands in it."""

    id: str
    tags: dict[str, str]
    day: str = ""


class TaskPage(msgspec.Struct, frozen=True):
    """Some of a split's tasks.

    Attributes:
        split: Whose.
        count: How many the split has.
        tasks: Those that were asked for, in the order of the split.
    """

    split: str
    count: int
    tasks: tuple[TaskInfo, ...]


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What an actor's model is asked: the first `keep` messages of the role's last question, and then `added`."""

    role: str
    seed: int
    keep: int
    added: tuple[Message, ...]
    tools: tuple[str, ...]
    temperature: float
    top_p: float
    max_tokens: int | None

    @classmethod
    def of(cls, request: Request, known: Sequence[Message], seed: int) -> Question:
        """The question behind a request, for who knows some messages already."""
        keep = 0
        for old, new in zip(known, request.messages, strict=False):
            if old is not new and old != new:
                break
            keep += 1
        return cls(
            role=request.role,
            seed=seed,
            keep=keep,
            added=tuple(request.messages[keep:]),
            tools=tuple(tool.name for tool in request.tools),
            temperature=request.temperature,
            top_p=request.top_p,
            max_tokens=request.max_tokens,
        )


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """How an episode stands.

    Attributes:
        status: "starting" while its world is built, "open", "ended", or "closed".
        turns: How many have been played.
        end, reason: How and why it ended; None and empty while it goes on.
        validity: "unknown" until it is judged.
        score: Of a valid episode.
        state_digest: Names the world after the last turn; empty before the first, and for an agent's key.
        task_digest: Names the task with its start world; empty while that is built, and for an agent's key.
    """

    id: str
    status: Literal["starting", "open", "ended", "closed"]
    environment: str
    split: str
    task: str
    seed: int
    member: int
    attempt: int
    agent: str
    harness: Literal["server", "client"]
    turns: int
    end: End | None
    reason: str
    validity: Literal["valid", "invalid", "unknown"]
    failure: Failure | None
    score: float | None
    state_digest: str
    task_digest: str


class Detail(Status, frozen=True, kw_only=True):
    """An episode with what belongs to its moment.

    Attributes:
        rewards: Of all levels, in the order in which they were given.
        question: What is asked for next, whole; None when nothing is, or the caller's own harness plays.
        prompt: The agent's first messages, where the caller's own harness plays; else empty.
        roles: What the task tells other actors; only where the caller's own harness plays.
        label: What the record calls the split.
        day: The task's.
        mcp_url: Where an agent plays it by the Model Context Protocol; empty where it cannot.
    """

    rewards: tuple[Reward, ...]
    question: Question | None
    prompt: tuple[Message, ...]
    roles: dict[str, str]
    label: str
    day: str
    mcp_url: str


class EpisodePage(msgspec.Struct, frozen=True):
    """Some of the caller's episodes; an admin's are all.

    Attributes:
        count: How many there are.
        episodes: Those that were asked for, in the order in which they began; one process's after another's.
    """

    count: int
    episodes: tuple[Status, ...]


class OpenedThread(msgspec.Struct, frozen=True):
    """The conversation that a join opened."""

    thread: int
    messages: tuple[Message, ...]


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What the criteria say."""

    validity: Literal["valid", "invalid", "unknown"]
    failure: Failure | None
    score: float | None
    rewards: tuple[Reward, ...]
    state_digest: str


class ReplyResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a reply led to.

    Attributes:
        turns: Those that were played since, of all roles that the caller may read.
        observation: What the agent reads of its call, or what was said to it after its words.
        is_error: Whether the call was refused.
        finished: Whether the episode has ended.
        reward: The score, on what ended a valid episode; None on all before.
        status: How the episode stands now.
        question: What is asked next.
    """

    turns: tuple[Turn, ...]
    observation: Content
    is_error: bool
    finished: bool
    reward: float | None
    status: Status
    question: Question | None


class StateDigest(msgspec.Struct, frozen=True):
    """What names the world as it stands."""

    state_digest: str


class Divergence(msgspec.Struct, frozen=True):
    """Where a replay left the record."""

    turn: int | None
    step: int | None
    field: str
    words: str


class ReplayResult(msgspec.Struct, frozen=True):
    """Whether a replay gave the same bytes."""

    agree: bool
    divergence: Divergence | None


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One call.

    Attributes:
        seq: Its number among all calls of the episode.
        turn: The turn that it is part of, which is the `dev.quintain/seq` of its answer.
        state_digest: Names the world after the turn; only at the last call of each.
    """

    seq: int
    turn: int
    role: str
    thread: int
    step: Step
    state_digest: str


class CallLog(msgspec.Struct, frozen=True):
    """The calls of an episode, in the order in which they were made."""

    entries: tuple[Entry, ...]


class Health(msgspec.Struct, frozen=True):
    """That the server lives, and whether it is about to end."""

    status: Literal["ok", "draining"]
