"""Response types of the control plane, of which the OpenAPI document is made, too."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from quintain.config import Config
from quintain.errors import Failure
from quintain.trace import Content, End, Level, Message, Reward, Step, Turn


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Error (RFC 9457)."""

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
    """Criterion of the verifier, without its code."""

    name: str
    level: Level
    weight: float
    low: float
    high: float
    normalize: bool
    after: str | None


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
    """Request to an actor's model: the first `keep` messages of the role's last question, then `added`."""

    role: str
    seed: int
    keep: int
    added: tuple[Message, ...]
    tools: tuple[str | ToolInfo, ...]
    """Name of each tool; the whole tool if the environment does not list it."""
    temperature: float
    top_p: float
    max_tokens: int | None


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """State of an episode.

    Attributes:
        status: "starting" while its world is built, "open", "ended", or "closed".
        turns: Number of turns so far.
        end, reason: How and why it ended; None and empty while it goes on.
        validity: "unknown" until it is scored.
        score: Of a valid episode.
        state_digest: Of the world after the last turn; empty before the first, and for an agent's key.
        task_digest: Of the task with its start world; empty while that is built, and for an agent's key.
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
    """Episode with its current question and addresses.

    Attributes:
        rewards: Of all levels, in the order in which they were given.
        question: Next question, whole; None if there is none, or a client-side harness plays.
        prompt: The agent's first messages, if a client-side harness plays; else empty.
        roles: The task's instructions to other actors, if a client-side harness plays; else empty.
        label: Name of the split in the record.
        day: Task chain of the task.
        mcp_url: Address for an agent over the Model Context Protocol; empty if there is none.
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
    """Verdict of the criteria."""

    validity: Literal["valid", "invalid", "unknown"]
    failure: Failure | None
    score: float | None
    rewards: tuple[Reward, ...]
    state_digest: str


class ReplyResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a reply.

    Attributes:
        turns: Turns played since, of all roles that the caller may read.
        observation: Result of the agent's call, or the words said in response to the agent's.
        is_error: True if the call was refused.
        finished: True if the episode has ended.
        reward: The score, if this reply ended a valid episode; else None.
        status: State of the episode now.
        question: Next question.
    """

    turns: tuple[Turn, ...]
    observation: Content
    is_error: bool
    finished: bool
    reward: float | None
    status: Status
    question: Question | None


class StateDigest(msgspec.Struct, frozen=True):
    """Digest of the world as it is."""

    state_digest: str


class Divergence(msgspec.Struct, frozen=True):
    """Place where a replay differs from the record."""

    turn: int | None
    step: int | None
    field: str
    words: str


class ReplayResult(msgspec.Struct, frozen=True):
    """Result of a replay: equal bytes, or the first difference."""

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
    """Health of the server."""

    status: Literal["ok", "draining"]
