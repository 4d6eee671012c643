"""Trace: the record of one episode. It is plain data without real time, so that it replays to the byte.

Its parts are `gc=False`: they cannot refer to themselves, and a server that holds many of them would look through all
of them for garbage, again and again.
"""

from __future__ import annotations

import enum
import itertools
import math
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from . import codec
from .config import Config
from .errors import Failure, TraceError, UsageError

SCHEMA = 1
"""Version of `Trace`; raised whenever an old trace could be misread."""


SOLVED = 1.0 - 1e-9
"""Least score that counts as a success."""


class Text(msgspec.Struct, frozen=True, gc=False, tag="text"):
    """A block of words."""

    text: str


class Image(msgspec.Struct, frozen=True, gc=False, tag="image"):
    """A picture: its bytes as a file of `media_type`, such as "image/png"."""

    media_type: str
    data: bytes


Block = Text | Image
Content = str | tuple[Block, ...]
"""What a message or an observation says: plain text, or blocks where pictures are involved."""


def plain(content: Content) -> str:
    """The words of a content; a picture is named by its type and size."""
    if isinstance(content, str):
        return content
    return "\n".join(b.text if isinstance(b, Text) else f"[{b.media_type}, {len(b.data)} bytes]" for b in content)


class Observation(msgspec.Struct, frozen=True):
    """Result of a tool in two parts: `content` for the model, `data` for clients and scoring functions.

    Attributes:
        content: Anything that a tool may return by itself.
        data: Plain data with a JSON form; no message to the model holds it. `max_observation_bytes` bounds both parts.
            Its `planned_fault` names trouble that the world had planned for this call; it becomes `Step.fault`.
    """

    content: Any
    data: dict[str, Any] = {}


class ToolCall(msgspec.Struct, frozen=True, gc=False):
    """Call of a tool by a model."""

    id: str
    name: str
    arguments: str
    """The JSON text exactly as the model wrote it."""


class Message(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One entry of a conversation."""

    role: Literal["system", "user", "assistant", "tool"]
    content: Content = ""
    calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None
    """The call that a tool message answers."""
    reasoning: str = ""
    """What the model thought aloud, where the endpoint shows it apart."""

    @property
    def text(self) -> str:
        """Text of the content, without images."""
        return plain(self.content)


class Tokens(msgspec.Struct, frozen=True, gc=False):
    """Tokens of one reply, as the endpoint gave them; nothing is tokenized again.

    Raises:
        ValueError: There isn't one finite logprob per completion token, or the versions do not cover the completion.
    """

    prompt: list[int]
    """In a Reply the whole prompt; in a Turn only what it added to the branch."""
    completion: list[int]
    logprobs: list[float] = []
    """Natural log, one per completion token; empty when the endpoint gave none."""
    versions: list[tuple[int, int]] | msgspec.UnsetType = msgspec.UNSET
    """(first completion token, policy version) of each run of tokens by the same weights; the first run begins at 0.
    Unset, and absent from the record, when the endpoint gave no version per token."""

    def __post_init__(self) -> None:
        if self.logprobs and len(self.logprobs) != len(self.completion):
            raise ValueError(f"{len(self.completion)} completion tokens, but {len(self.logprobs)} logprobs")
        if not all(map(math.isfinite, self.logprobs)):
            raise ValueError("a logprob is not finite")
        if self.versions is not msgspec.UNSET:
            starts = [first for first, _ in self.versions]
            ordered = all(first < following for first, following in itertools.pairwise(starts))
            if not (starts[:1] == [0] and starts[-1] < len(self.completion) and ordered):
                raise ValueError(
                    f"versions must begin at token 0 and rise below {len(self.completion)}, the completion's length; "
                    f"got runs that begin at {starts}"
                )


class Usage(msgspec.Struct, frozen=True, gc=False):
    """Token counts as the endpoint reported them."""

    prompt: int = 0
    completion: int = 0


class Reply(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One answer of the model."""

    message: Message
    tokens: Tokens | None = None
    usage: Usage = Usage()
    policy_version: int | None = None
    """Version of the weights that drew it, where the endpoint says; `Tokens.versions` has those of single tokens."""
    finish_reason: str = ""
    """Why the sampler stopped, in the endpoint's words: "length" means that it was cut off."""


class Level(enum.Enum):
    """The span a reward speaks about."""

    STEP = "step"
    TURN = "turn"
    PHASE = "phase"
    TRAJECTORY = "trajectory"
    GROUP = "group"


class Reward(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """One verdict of one criterion.

    Attributes:
        raw: What the criterion said, within its declared range; None when it was skipped, or a phase not reached.
        value: What is delivered: `raw`, or its place in the range as a number in [0, 1]; None like `raw`.
        weight: Its share in the sum of its level.
        turn: Index of the turn it speaks about; None at trajectory level and for a phase not reached.
        step: Index within that turn; only at step level.
        reason: Why, in the criterion's words.
        details: Parts, quotes, votes or errors of the verdict, as plain data; absent from the record if empty.
    """

    name: str
    level: Level
    raw: float | None
    value: float | None
    weight: float = 1.0
    turn: int | None = None
    step: int | None = None
    reason: str = ""
    details: dict[str, Any] = {}


class Step(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One tool call (the action) and what came back (the observation)."""

    call: ToolCall
    observation: Content
    is_error: bool = False
    fault: str | None = None
    """The planned fault that configuration, or a noisy world, injected here; None is weather as usual."""
    data: dict[str, Any] = {}
    """Data of the tool's `Observation`, for clients and scoring functions, which must not change it."""


class Turn(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """One reply, the steps it caused, and the world it left behind. A node of the message graph.

    Attributes:
        index: Position among all turns of the episode.
        role: Who acted.
        thread: Which conversation; 0 is the agent's, every `join` opens another.
        keep: Messages of the thread's context that were kept from its previous turn; None means all of them.
        added: Messages that the context had beyond those: prompts, words from outside, a summary.
        branch: Counts the thread's breaks: it rises when the context or its tokens do not continue the turn before.
        reply: With only the tokens this turn adds to its branch.
        state_digest: Names the world after the turn.
    """

    index: int
    role: str = "agent"
    thread: int = 0
    branch: int = 0
    keep: int | None = None
    added: tuple[Message, ...] = ()
    reply: Reply
    steps: tuple[Step, ...] = ()
    rewards: tuple[Reward, ...] = ()
    state_digest: str = ""

    def produced(self) -> Iterator[Message]:
        """Yields the messages that the turn adds to its context: the reply and one message per step."""
        yield self.reply.message
        for step in self.steps:
            yield Message("tool", step.observation, call_id=step.call.id)


class End(enum.Enum):
    """End of an episode. Only TERMINATED and TRUNCATED episodes are scored."""

    TERMINATED = "terminated"
    TRUNCATED = "truncated"
    FAILED = "failed"


def as_read(turn: Turn) -> Turn:
    """Returns the turn as a reader of the record will find it.

    Raises:
        UsageError: It cannot.
    """
    try:
        return codec.loads(codec.dumps(turn), Turn)
    except Exception as error:
        raise UsageError(f"turn {turn.index} does not fit into a record: {error}") from error


class Trace(msgspec.Struct, kw_only=True):
    """The whole record. Seconds live beside it, never in it.

    Attributes:
        environment: Name of E; `fingerprint` and `tools_digest` say which version of it.
        task: The task's id; `task_digest` names its content, `tags` its families.
        seed: Of the world, the same for all of a group; `member` counts within the group, `attempt` its retries.
        continues: Task and attempt of the episode of the same member and task chain in whose final world this one
            began; unset, and absent from the record, if it began in its task's own world. `after` in a record.
        forked: Task, member, attempt and number of turns of the episode of which this one is a fork; unset, and absent
            from the record, if it is none.
        agent: Name of the model that played.
        external_harness: Fingerprint of a client-side harness; empty if the client sent none; unset, and absent from
            the record, if the environment's own harness ran the episode. `led_by` in a record.
        end: None while the episode goes on.
        reason: Why it ended, in the words of who ended it.
        interrupted: True if the episode was ended from outside while its harness waited for a reply; else unset, and
            absent from the record. `cut` in a record.
        failure: Set exactly when `end` is FAILED.
        criteria: Names of everything that judged; each has its rewards below or in the turns.
        rewards: Of phases not reached, of the whole trajectory, and of its place in the group.
        score: The trajectory-level and group-level criteria combined; None for a failed episode, and for one without
            a group where only groups are judged.
    """

    version: int = SCHEMA
    environment: str
    fingerprint: str
    tools_digest: str
    split: str = ""
    task: str
    task_digest: str
    tags: dict[str, str] = {}
    seed: int
    member: int = 0
    attempt: int = 0
    continues: tuple[str, int] | msgspec.UnsetType = msgspec.field(default=msgspec.UNSET, name="after")
    forked: tuple[str, int, int, int] | msgspec.UnsetType = msgspec.UNSET
    agent: str = ""
    external_harness: str | msgspec.UnsetType = msgspec.field(default=msgspec.UNSET, name="led_by")
    config: Config
    turns: list[Turn] = []
    end: End | None = None
    reason: str = ""
    interrupted: bool | msgspec.UnsetType = msgspec.field(default=msgspec.UNSET, name="cut")
    failure: Failure | None = None
    criteria: tuple[str, ...] = ()
    rewards: list[Reward] = []
    score: float | None = None

    @property
    def validity(self) -> Literal["valid", "invalid", "unknown"]:
        """Validity of the episode for training; "unknown" while no verdict has reached us."""
        if self.failure is not None:
            return "invalid"
        return "unknown" if self.end is None or self.score is None else "valid"

    def fail(self, failure: Failure) -> None:
        """Ends the episode by a failure; the first one is kept, and outweighs any other end."""
        if self.failure is None:
            self.failure, self.end, self.reason, self.score = failure, End.FAILED, failure.kind, None

    def every_reward(self) -> Iterator[Reward]:
        """Rewards of all levels, in the order they were given."""
        for turn in self.turns:
            yield from turn.rewards
        yield from self.rewards

    def context(self, index: int) -> list[Message]:
        """The messages that the model saw before it gave the reply of turn `index`."""
        thread = [turn for turn in self.turns[: index + 1] if turn.thread == self.turns[index].thread]
        messages: list[Message] = []
        for turn in thread:
            if turn.keep is not None:
                del messages[turn.keep :]
            messages += turn.added
            if turn is not thread[-1]:
                messages += turn.produced()
        return messages

    def to_bytes(self) -> bytes:
        """Canonical bytes: two plays agree exactly when these do."""
        return codec.dumps(self)

    def to_json(self) -> bytes:
        """One line for a file: the record and the digest that protects it."""
        body = codec.json(self)
        return b'{"digest":"%s","trace":%s}' % (codec.digest(body).encode(), body)

    @classmethod
    def from_json(cls, line: bytes) -> Trace:
        """Read a line of `to_json`.

        Raises:
            TraceError: Torn, changed after it was written, or of another schema version.
        """
        try:
            envelope = msgspec.json.decode(line, type=_Envelope)
            version = msgspec.json.decode(envelope.trace, type=_Version).version
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise TraceError(f"not a trace, or a truncated one: {error}") from error
        if version != SCHEMA:
            raise TraceError(f"this trace has schema version {version}, this program reads version {SCHEMA}")
        if (found := codec.digest(bytes(envelope.trace))) != envelope.digest:
            raise TraceError(f"a corrupted trace: its digest was {envelope.digest} when it was written, and is {found}")
        try:
            return msgspec.json.decode(envelope.trace, type=cls)
        except msgspec.DecodeError as error:
            raise TraceError(f"a trace of version {SCHEMA} with a wrong field: {error}") from error


class Timing(msgspec.Struct):
    """Seconds that an episode spent, by activity. Real time: it lies beside the trace, never in it."""

    model_s: float = 0.0
    tool_s: float = 0.0
    verifier_s: float = 0.0
    queue_s: float = 0.0
    total_s: float = 0.0


class _Envelope(msgspec.Struct):
    digest: str
    trace: msgspec.Raw


class _Version(msgspec.Struct):
    version: int
