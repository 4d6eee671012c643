"""Request types of the control plane, of which the OpenAPI document is made, too. Unknown fields are refused."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from quintain.config import Config
from quintain.errors import Failure
from quintain.serve.episodes.actions import Change
from quintain.serve.episodes.secrets import MOST
from quintain.trace import Message, Reply

Whole = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Page = Annotated[int, msgspec.Meta(ge=1, le=1000)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=25)]
Name = Annotated[str, msgspec.Meta(max_length=1000)]
Role = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
Confided = Annotated[
    dict[str, Annotated[str, msgspec.Meta(extra_json_schema={"maxLength": MOST})]],
    msgspec.Meta(
        description=f"Secrets by name, of {MOST:,} characters together at most; an empty one is none.",
        extra_json_schema={"writeOnly": True},
    ),
]


class Create(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Episode to begin.

    Attributes:
        environment: Name, in any case; empty for the server's first one.
        split: Of the task; empty for "test", or the last split if there is no such.
        task: Id of the task; None to use `index`.
        index: Place of the task in the split; negative values count from the end.
        seed, member, attempt, agent: Fields of the record; without a member it is the next of its task's group, or that
            of the episode named by `after`.
        harness: "server": the environment's own harness plays and asks for replies. "client": that of the caller plays,
            and sends steps, changes and the end.
        led_by: With "client": fingerprint of that harness, for the record; empty if unknown. The fingerprint of
            the environment's own harness is not recorded.
        everyone: Ask the caller for the replies of all roles, not of the agent alone.
        config: Configuration instead of the environment's own.
        label: Name of the split in the record, if it is another one.
        after: Episode whose last world is the start of this one: the next task of a chain.
        secrets: Secrets for tools and scoring functions of this episode, by name. No answer and no record holds them.
    """

    environment: Name = ""
    split: Name = ""
    task: Name | None = None
    index: Whole = 0
    seed: Whole = 0
    member: Count | None = None
    attempt: Count = 0
    agent: Name = ""
    harness: Literal["server", "client"] = "server"
    led_by: str = ""
    everyone: bool = False
    config: Config | None = None
    label: Name | None = None
    after: Name | None = None
    secrets: Confided = {}

    @property
    def plain(self) -> Create:
        """The request without the values of its secrets."""
        return msgspec.structs.replace(self, secrets=dict.fromkeys(sorted(self.secrets), ""))


class CallBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tool call of the agent."""

    name: str
    arguments: msgspec.Raw = msgspec.field(default_factory=lambda: msgspec.Raw(b"{}"))
    """As JSON; the tool reads them as they were written."""


class AnswerBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Words of the agent, without a call."""

    text: str


class ReplyBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A whole reply to the open question."""

    reply: Reply


class StepBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A reply in one of the conversations of the caller's own harness.

    Attributes:
        reply: What the actor's model said.
        thread: Which conversation: 0 is the agent's, and each join opened the next.
        before: What the harness did since the last step, in order.
    """

    reply: Reply
    thread: Count = 0
    before: tuple[Change, ...] = ()


class JoinBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Actor that enters; its context begins with the task's instructions to its role, then these messages."""

    role: Role
    messages: tuple[Message, ...] = ()


class TerminateBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The end, by the rules of the game or by a failure on the caller's side."""

    reason: Name = "the client ended it"
    failure: Failure | None = None


class VerifyBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A verdict that is wanted.

    Attributes:
        before: What the caller's own harness did since the last step.
        now: Judge a copy of the episode as though it ended here; the episode itself goes on.
    """

    before: tuple[Change, ...] = ()
    now: bool = False


class EpisodesQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Range of episodes."""

    offset: Count = 0
    limit: Page = 100


class TasksQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Range of the tasks of a split."""

    split: str = ""
    offset: Count = 0
    limit: Page = 100


class DetailQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """For how many seconds the answer may wait for the world to be built."""

    wait: Seconds = 0.0


class RestoreQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Harness of a restored episode, as for `Create`."""

    harness: Literal["server", "client"] = "server"
    everyone: bool = False
