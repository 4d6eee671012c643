"""Contexts are rebuilt from the messages that each turn added."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from quintain.trace import (
    Message,
    Reply,
    Step,
    ToolCall,
    Trace,
    Turn,
)
from tests.test_trace import WORDS, blank


class Author:
    """Plays threads by hand and keeps each context whole, as a model would have seen it."""

    def __init__(self) -> None:
        self.trace = blank()
        self.seen: list[list[Message]] = []
        self.contexts: dict[int, list[Message]] = {}
        self.recorded: dict[int, int] = {}

    def play(self, thread: int, added: list[Message], keep: int | None, calls: int) -> None:
        context = self.contexts.setdefault(thread, [])
        if not self.recorded.get(thread):
            keep = None
        elif keep is not None:
            keep %= self.recorded[thread]
            del context[keep:]
        context += added
        self.seen.append(list(context))
        index = len(self.trace.turns)
        asked = tuple(ToolCall(f"{index}.{n}", "go", "{}") for n in range(calls))
        reply = Reply(Message("assistant", f"reply {index}", asked))
        steps = tuple(Step(call, f"saw {call.id}") for call in asked)
        self.trace.turns.append(
            Turn(index=index, thread=thread, keep=keep, added=tuple(added), reply=reply, steps=steps)
        )
        context += [reply.message, *(Message("tool", step.observation, call_id=step.call.id) for step in steps)]
        self.recorded[thread] = len(context)


PLAYS = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.lists(st.builds(Message, st.just("user"), WORDS), max_size=2),
        st.none() | st.integers(0, 20),
        st.integers(0, 2),
    ),
    max_size=8,
)


@given(PLAYS)
def test_context_is_rebuilt_from_the_added_messages(
    plays: list[tuple[int, list[Message], int | None, int]],
) -> None:
    author = Author()
    for thread, added, keep, calls in plays:
        author.play(thread, added, keep, calls)
    again = Trace.from_json(author.trace.to_json())
    assert [again.context(index) for index in range(len(plays))] == author.seen


def test_a_compacted_context_keeps_its_head_and_gets_a_summary() -> None:
    author = Author()
    system, task, summary = Message("system", "be good"), Message("user", "do it"), Message("user", "so far: much")
    author.play(0, [system, task], None, 1)
    author.play(0, [], None, 1)
    author.play(0, [summary], 2, 0)
    assert author.trace.context(2) == [system, task, summary]
    assert [message.text for message in author.trace.context(1)] == ["be good", "do it", "reply 0", "saw 0.0"]
