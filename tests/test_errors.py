"""The words of errors, and who is blamed."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quintain import codec, errors
from quintain.errors import (
    KINDS,
    WALL_CLOCK_KINDS,
    DefinitionError,
    EpisodeError,
    Failure,
    JudgeError,
    ModelError,
    QuintainError,
    ReplayDivergence,
    RunStopped,
    ToolError,
    TraceError,
    UsageError,
    blame,
)


def test_the_tree_on_top_of_the_file_is_the_tree() -> None:
    drawn: dict[str, str] = {}
    above = ""
    for line in (errors.__doc__ or "").splitlines():
        mark, _, words = line.strip().partition(" ")
        if mark == "*":
            above = words.split()[0]
        if mark == "+":
            drawn[words.split()[0]] = above
    assert len(drawn) == 7
    for name, parent in drawn.items():
        assert issubclass(getattr(errors, name), getattr(errors, parent)), name
    assert not issubclass(ToolError, QuintainError | EpisodeError)
    assert issubclass(UsageError, ValueError)
    assert issubclass(TraceError, ValueError)
    assert issubclass(DefinitionError, QuintainError)


@pytest.mark.parametrize(
    ("turn", "step", "says"),
    [
        (3, 1, "turn 3, step 1, observation: the trace has 'a', the replay gave 'b'"),
        (0, None, "turn 0, observation: the trace has 'a', the replay gave 'b'"),
        (None, None, "observation: the trace has 'a', the replay gave 'b'"),
    ],
)
def test_a_divergence_says_where(turn: int | None, step: int | None, says: str) -> None:
    error = ReplayDivergence("observation", "a", "b", turn=turn, step=step)
    assert str(error) == says
    assert (error.turn, error.step, error.field, error.expected, error.found) == (turn, step, "observation", "a", "b")


def test_a_divergence_of_long_values_stays_readable() -> None:
    error = ReplayDivergence("observation", "a" * 1000, "b" * 298, turn=0, step=0)
    assert str(error).endswith("… (1002 characters), the replay gave '" + "b" * 298 + "'")
    assert len(str(error)) < 750
    assert len(error.expected) == 1000


@pytest.mark.parametrize(("report", "says"), [("", "too many"), ("  V: 3", "too many\n  V: 3")])
def test_a_stopped_run_shows_its_report(report: str, says: str) -> None:
    error = RunStopped("too many", report)
    assert (str(error), error.report) == (says, report)


@pytest.mark.parametrize(
    ("error", "part", "kind"),
    [
        (ModelError("x"), "model", "agent_request_failed"),
        (ModelError("x", kind="transport_timeout"), "model", "transport_timeout"),
        (JudgeError("x"), "V", "judge_failed"),
        (JudgeError("x", kind="judge_unparseable"), "V", "judge_unparseable"),
        (EpisodeError("x", component="S", kind="quintain:state_bug"), "S", "quintain:state_bug"),
        (ValueError("x"), "H", "agent_run_error"),
    ],
)
def test_an_episode_error_brings_its_own_blame(error: Exception, part: str, kind: str) -> None:
    failure = blame(error, component="H", kind="agent_run_error", stage="agent", turn=2)
    assert (failure.component, failure.kind, failure.stage, failure.turn) == (part, kind, "agent", 2)
    assert (failure.type, failure.message) == (type(error).__name__, "x")


def test_a_kind_is_one_of_the_vocabulary() -> None:
    assert WALL_CLOCK_KINDS < KINDS
    with pytest.raises(ValueError, match=r"kind must be one of \['agent_command_not_allowed', .*, got 'broken'"):
        EpisodeError("x", component="S", kind="broken")
    with pytest.raises(ValueError, match="got 'broken'"):
        Failure(component="S", kind="broken", stage="agent", type="x", message="", turn=0)


def raised(words: str) -> Exception:
    nothing: dict[str, str] = {}
    with pytest.raises(KeyError) as caught:
        nothing[words]
    return caught.value


@given(st.text() | st.binary().map(lambda data: data.decode(errors="surrogateescape")))
def test_any_message_fits_into_a_record(words: str) -> None:
    failure = blame(Exception(words), component="S", kind="quintain:tool_bug", stage="agent", turn=0)
    assert len(failure.message) <= 2000
    assert codec.loads(codec.dumps(failure), Failure) == failure
    assert msgspec.json.decode(codec.json(failure), type=Failure) == failure


def test_a_failure_message_masks_memory_addresses() -> None:
    one, two = object(), object()
    messages = {
        blame(Exception(f"{thing!r} broke"), component="S", kind="quintain:tool_bug", stage="agent", turn=0).message
        for thing in (one, two)
    }
    assert messages == {"<object object at 0x…> broke"}
    assert (
        blame(Exception("a" * 5000), component="S", kind="quintain:tool_bug", stage="agent", turn=0).message
        == "a" * 2000
    )


def test_a_traceback_digest_names_the_way_through_the_code() -> None:
    def digest(error: BaseException) -> str:
        return blame(error, component="S", kind="quintain:tool_bug", stage="agent", turn=0).traceback_digest

    assert digest(raised("a")) == digest(raised("b"))
    assert len(digest(raised("a"))) == 16
    assert digest(raised("a")) != digest(Exception("never raised"))
