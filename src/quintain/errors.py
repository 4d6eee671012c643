"""Every exception and every recorded failure.

* QuintainError             what this package raises at its caller
  + DefinitionError         the author's mistake, found while an Environment is put together
  + UsageError              the caller's mistake: a name or a value that does not exist; names the valid ones
  + TraceError              a trace that cannot be read: another schema version, truncated, corrupted
  + ReplayDivergence        a replay left its trace; says where
  + RunStopped              the failure gate stopped a run; says which part of E to fix
* EpisodeError              raised *inside* an episode to say who is to blame; becomes a Failure
  + ModelError              the endpoint broke, hung, or talked nonsense
    - ContextOverflow       the context is longer than the model takes
  + JudgeError              the verifier could not reach a verdict
* ToolError                 not a failure: text that a tool shows to the model

Three kinds of trouble, three treatments: the model's mistake is an observation (`ToolError`), the world's bug ends
the episode as a `Failure`, the caller's mistake raises.
"""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from . import codec

Component = Literal["T", "H", "V", "S", "C", "model"]
"""The component of E = {T, H, V, S, C} that caused a failure, or "model" for the model endpoint."""

Stage = Literal["admission", "seed", "agent", "verification", "cleanup"]
"""What the episode was doing when it broke."""

KINDS = frozenset({
    "transport_unreachable", "transport_peer_drop", "transport_timeout", "transport_local_resource",
    "agent_run_error", "agent_request_failed", "agent_timeout", "agent_command_not_allowed",
    "judge_failed", "judge_unparseable", "verifier_error",
    "provider_unavailable", "provider_quota_exhausted", "provider_oom_killed",
    "session_lost", "session_expired", "session_release_failed", "cancelled", "kill_shaped", "shutdown",
    "persistence_failed", "cohort_incomplete",
    "quintain:tool_bug", "quintain:state_bug", "quintain:tool_timeout", "quintain:reset_failed",
    "quintain:replay_diverged", "quintain:invariant_violated", "quintain:reward_out_of_range",
    "quintain:model_reply_invalid", "quintain:judge_missing", "quintain:verifier_timeout",
})  # fmt: skip
"""What went wrong, and nothing else. Plain names are the field's shared vocabulary, ours carry a prefix."""

BROKEN = (Exception, SystemExit)
"""What an author's code may raise; Ctrl-C and cancellation are not among it."""

WALL_CLOCK_KINDS = frozenset(
    {"transport_timeout", "agent_timeout", "quintain:tool_timeout", "quintain:verifier_timeout", "cancelled"}
)
"""Failures decided by a real clock: a replay cannot be asked to meet them again."""
JUDGE_KINDS = frozenset({"judge_failed", "judge_unparseable", "quintain:judge_missing"})
"""Failures of judges, which a replay does not ask again."""


post_mortem: ContextVar[Callable[[BaseException], None]] = ContextVar("post_mortem", default=lambda error: None)
"""Callback that receives the exception of each failure where it happens, such as a debugger."""

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
# The repr of an object names where it lies in memory; a replay lies elsewhere.


class QuintainError(Exception):
    """Base class of the errors this package raises at its caller."""


class DefinitionError(QuintainError):
    """An environment is wrongly put together; the message names the offending part."""


class UsageError(QuintainError, ValueError):
    """A name or value that cannot be used; the message shows it beside the valid ones."""


class TraceError(QuintainError, ValueError):
    """Bytes that are no trace of this version; the message says where and what was expected."""


class ReplayDivergence(QuintainError):
    """A replay answered differently than its trace.

    Attributes:
        turn: Index of the first turn that differs; None when the turns agree and the end or the rewards differ.
        step: Index of the first step that differs within that turn; None when none does.
        field: Name of the first field that differs, such as "observation" or "state_digest".
        expected: What the trace holds.
        found: What the replay gave.
    """

    def __init__(
        self, field: str, expected: Any, found: Any, *, turn: int | None = None, step: int | None = None
    ) -> None:
        where = "".join(f"{name} {index}, " for name, index in (("turn", turn), ("step", step)) if index is not None)
        super().__init__(f"{where}{field}: the trace has {short(expected)}, the replay gave {short(found)}")
        self.turn, self.step, self.field, self.expected, self.found = turn, step, field, expected, found


class RunStopped(QuintainError):
    """Too many episodes failed: a run that goes on would train on what is left over.

    Attributes:
        report: Failures by component, kind and task, as text for a person.
    """

    def __init__(self, message: str, report: str = "") -> None:
        super().__init__(f"{message}\n{report}".strip())
        self.report = report


class EpisodeError(Exception):
    """Raised inside an episode by whoever knows the culprit; the episode ends with this blame."""

    def __init__(self, message: str, *, component: Component, kind: str) -> None:
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {sorted(KINDS)}, got {kind!r}")
        super().__init__(message)
        self.component: Component = component
        self.kind = kind


class ModelError(EpisodeError):
    """The model endpoint failed; blame goes to `model`, never to the policy."""

    def __init__(self, message: str, *, kind: str = "agent_request_failed") -> None:
        super().__init__(message, component="model", kind=kind)


class ContextOverflow(ModelError):
    """The context is longer than the model takes: after a turn of the agent it truncates the episode."""


class JudgeError(EpisodeError):
    """A criterion has no verdict: its judge is missing, failed, or cannot be parsed."""

    def __init__(self, message: str, *, kind: str = "judge_failed") -> None:
        super().__init__(message, component="V", kind=kind)


class ToolError(Exception):
    """Raised by a tool on purpose; the model reads the message and may try again."""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Reason for which an episode has no reward. A failed episode is left out, never scored zero.

    Attributes:
        component: What caused it; `part` in a record.
        kind: One of `KINDS`.
        stage: What the episode was doing.
        type: Class name of the exception.
        message: Its text, at most 2,000 characters.
        turn: Turns that were complete when it happened.
        traceback_digest: Names the place in the code: equal for equal stacks; empty when nothing was raised.
    """

    component: Component = msgspec.field(name="part")
    kind: str
    stage: Stage
    type: str
    message: Annotated[str, msgspec.Meta(max_length=2000)]
    turn: int
    traceback_digest: str = ""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind must be one of {sorted(KINDS)}, got {self.kind!r}")


class Frame(msgspec.Struct, frozen=True):
    """Line of the author's code in a traceback.

    Attributes:
        file: Path of the source file on the machine of the episode.
        line: Number of the line, from 1.
        function: Name of the function.
        code: The line of source, without indentation; empty if the file cannot be read.
    """

    file: str
    line: int
    function: str
    code: str


def author_frames(error: BaseException) -> tuple[Frame, ...]:
    """Returns the frames outside this package, outermost first, of an exception, else of the one that caused it.

    An EpisodeError is raised on purpose, so its cause is not searched.
    """
    cause: BaseException | None = error
    while cause is not None:
        walk = traceback.walk_tb(cause.__traceback__)
        stack = [(frame, line) for frame, line in walk if not is_framework(frame.f_globals.get("__package__"))]
        if stack:
            read = traceback.StackSummary.extract(iter(stack))
            return tuple(Frame(f.filename, f.lineno or 0, f.name, f.line or "") for f in read)
        cause = None if isinstance(cause, EpisodeError) else cause.__cause__
    return ()


def describe(error: str, frames: Sequence[Frame]) -> str:
    """Returns the text of an error with function and line in the author's code, if there are frames.

    The function is the outermost one, such as the tool; the line is the last one in the folder of its file, because a
    library that it calls is not where the author looks.
    """
    if not frames:
        return error
    folder, here = str(Path(frames[0].file).parent), f"{Path.cwd()}{os.sep}"
    place = [frame for frame in frames if frame.file.startswith(folder)][-1]
    return f"{error}, in {frames[0].function} ({place.file.removeprefix(here)}, line {place.line})"


def blame(error: BaseException, *, component: Component, kind: str, stage: Stage, turn: int) -> Failure:
    """The failure that `error` means. An EpisodeError brings its own component and kind."""
    post_mortem.get()(error)
    if isinstance(error, EpisodeError):
        component, kind = error.component, error.kind
    # File names, line numbers, our own plumbing and the frames of comprehensions (gone since Python 3.12) would differ
    # between machines, threads and versions that behave alike.
    stack = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
    frames = ((frame.f_code.co_name, frame.f_globals.get("__package__")) for frame in stack)
    names = "\n".join(name for name, package in frames if not (is_framework(package) or name.endswith("comp>")))
    return Failure(
        component=component,
        kind=kind,
        stage=stage,
        type=type(error).__name__,
        message=_ADDRESS.sub(" at 0x…", str(error)).encode(errors="replace").decode()[:2000],
        turn=turn,
        traceback_digest=codec.digest(names.encode())[:16],
    )


def is_framework(package: str | None) -> bool:
    """True for the name of this package, of asyncio, and of one that counts as the framework by its `__framework__`."""
    return package in (__package__, "asyncio") or hasattr(sys.modules.get(package or ""), "__framework__")


def short(value: Any) -> str:
    """Returns the repr of a value, cut after 300 characters."""
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:300]}… ({len(text)} characters)"
