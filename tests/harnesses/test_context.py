"""Context management: what strategies keep, what they refuse, and the budget."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quintain as qn
from quintain.harness import Request
from quintain.harnesses import AgentLoop, Fold, KeepRecent, Notes, Rebuild, Summarise, View, broken_conditions, quarter
from quintain.harnesses.budget import INDEX, Counter, references
from quintain.harnesses.sources import CITATION, Source, Sources, full_text
from quintain.harnesses.strategies import SUMMARY
from quintain.trace import Image, Message, Reply, Text, ToolCall, plain
from tests.harnesses.agents import Lines, env_of, run, say, texts

BUDGET = 1_500


async def quiet(role: str, prompt: str) -> str:
    return ""


def look(page: int, length: int = 200, text: str = "") -> Reply:
    return say(text, ("look", f'{{"page": {page}, "length": {length}}}'))


def ids(request: Request) -> list[str]:
    return [found[1] for text in texts(request, "tool") if (found := CITATION.match(text))]


def test_keep_recent_reduces_older_results_to_id_and_first_line() -> None:
    model = Lines(*(look(page) for page in range(4)), say("done"))
    trace = run(AgentLoop(context=KeepRecent(2)), model)
    first, second, third, fourth = texts(model.asked[-1], "tool")
    key = ids(model.asked[-1])[0]
    assert first == f'[r:{key}] page 0 of 1\n[cut: recall("{key}") returns all 212 characters]'
    assert second.endswith("characters]")
    assert third.endswith("has 74 words. ")
    assert fourth.endswith("has 111 words. ")
    assert trace.score == 1.0


def test_keep_recent_changes_results_in_batches() -> None:
    model = Lines(*(look(page) for page in range(6)), say("done"))
    trace = run(AgentLoop(context=KeepRecent(1, batch=3)), model)
    short = [sum(text.endswith("characters]") for text in texts(request, "tool")) for request in model.asked]
    assert short == [0, 0, 0, 0, 3, 3, 3]
    assert [turn.branch for turn in trace.turns] == [0, 0, 0, 0, 1, 1, 1]


def test_keep_recent_leaves_all_results_of_the_newest_turn() -> None:
    pages = [("look", f'{{"page": {page}}}') for page in range(3)]
    model = Lines(say("", *pages), look(9), say("done"))
    run(AgentLoop(context=KeepRecent(0)), model)
    assert not any(text.endswith("characters]") for text in texts(model.asked[1], "tool"))
    assert [text.endswith("characters]") for text in texts(model.asked[2], "tool")] == [True, True, True, False]


def test_recall_returns_the_whole_result() -> None:
    async def model(request: Request) -> Reply:
        turn = sum(message.role == "assistant" for message in request.messages)
        if turn == 3:
            return say("", ("recall", f'{{"id": "{ids(request)[0]}"}}'), ("recall", '{"id": "00000000"}'))
        if turn == 4:
            assert texts(request, "tool")[-2].partition("] ")[2] == "page 0 of 1\n" + "line 0 has 0 words. " * 10
            assert texts(request, "tool")[-1].endswith(
                "no result has the id '00000000'; ids are the eight digits in [r:...]"
            )
        return look(turn) if turn < 3 else say("done")

    trace = run(AgentLoop(context=KeepRecent(1)), model)
    assert [len(turn.steps) for turn in trace.turns] == [1, 1, 1, 0, 0]
    assert trace.score == 1.0


def test_results_get_ids_without_a_new_branch() -> None:
    model = Lines(look(1), look(2), say("done"))
    trace = run(AgentLoop(budget=10_000), model)
    assert [turn.branch for turn in trace.turns] == [0, 0, 0]
    assert trace.turns[0].steps[0].observation == "page 1 of 1\n" + "line 1 has 37 words. " * 10


def test_sources_give_equal_ids_to_equal_contents_only(monkeypatch: pytest.MonkeyPatch) -> None:
    sources = Sources()
    call, other = ToolCall("1", "look", "{}"), ToolCall("2", "see", "{}")
    key = sources.add(call, "text")
    assert sources.add(other, "text") == sources.add(call, "text") == key
    assert sources.entries[key].text == "look {}\nsee {}\ntext"
    blocks = (Text("a"), Image("image/png", b"x"))
    assert sources.recall(sources.add(call, blocks)) == blocks
    assert sources.recall(f"[r:{key}]", offset=2) == "xt"
    digests = iter(["aaaaaaaa", "aaaaaaaa", "bbbbbbbb"])
    monkeypatch.setattr("quintain.codec.digest", lambda data: next(digests))
    assert [sources.add(call, "one"), sources.add(call, "two")] == ["aaaaaaaa", "bbbbbbbb"]
    assert sources.recall("aaaaaaaa") == "one"


def test_rebuild_writes_the_prompt_from_what_the_harness_sees() -> None:
    def prompt(view: View) -> str:
        notes = view.held["Notes"]
        assert isinstance(notes, Notes)
        return f"{len(view.sources.entries)} results; notes: {'; '.join(notes.notes)}"

    model = Lines(look(1), say("", ("note", '{"text": "page 1 read"}')), look(2), say("done"))
    trace = run(AgentLoop(context=Rebuild(prompt), tools=(Notes(),)), model)
    assert [len(request.messages) for request in model.asked] == [2, 4, 4, 4]
    assert texts(model.asked[3], "user") == ["Read the pages.", "3 results; notes: page 1 read"]
    assert trace.score == 1.0


def cite(request: Request) -> str:
    """Returns the first citation in the prompt of a summary."""
    found = CITATION.search(texts(request, "user")[-1].partition("Task and turns:")[2])
    assert found is not None
    return found[0]


@pytest.mark.parametrize("kind", [Summarise, Fold])
def test_a_summary_replaces_old_turns_and_its_results_are_in_the_index(kind: type[Summarise]) -> None:
    cited: list[str] = []

    async def model(request: Request) -> Reply:
        if request.role == "writer":
            cited.append(cite(request))
            return say(f"- page 0 has 0 words {cited[-1]}")
        turn = sum(message.role == "assistant" for message in request.messages)
        seen = sum(text.startswith(SUMMARY) for text in texts(request, "user"))
        return say("done") if seen == 1 and turn > 5 else look(turn, 600)

    trace = run(AgentLoop(context=kind(by="writer"), budget=BUDGET), model)
    written = next(turn for turn in trace.turns if turn.role == "writer")
    after = trace.context(written.index + 1)
    assert after[1].text == f"{SUMMARY}\n- page 0 has 0 words {cited[0]}"
    assert after[2].text == f"{INDEX}\n{cited[0]} page 0 of 1"
    assert trace.turns[written.index + 1].branch == 1
    assert trace.score == 1.0


@pytest.mark.parametrize(
    ("summary", "reason"),
    [
        ("", "the summary is empty"),
        ("- it is red [r:00000000]", "no result has the id 00000000"),
        ("- 77 words", "the number 77 is not in any result: its line cites none"),
        ("- 77 words [r:{key}]", "the number 77 is not in the results that its line cites ({key})"),
        ('- it says "red" [r:{key}]', 'the quote "red" is not in the results that its line cites ({key})'),
        ("long " * 2000, "the context would have "),
    ],
)
def test_a_summary_is_refused_once_with_the_reason_and_then_results_are_stripped(summary: str, reason: str) -> None:
    prompts: list[str] = []

    async def model(request: Request) -> Reply:
        if request.role == "summariser":
            prompts.append(request.messages[-1].text)
            return say(summary.replace("{key}", cite(request)[3:11]))
        turn = sum(message.role == "assistant" for message in request.messages)
        return say("done") if len(prompts) >= 2 else look(turn, 600)

    trace = run(AgentLoop(context=Summarise(), budget=BUDGET), model)
    assert len(prompts) == 2
    key = re.search(r"\[r:(\w{8})\] page 0", prompts[0])
    assert key is not None
    assert f"refused:\n- {reason.replace('{key}', key[1])}" in prompts[1]
    last = trace.context(trace.turns[-1].index)
    assert not any(message.text.startswith(SUMMARY) for message in last)
    assert any(message.text.endswith("characters]") for message in last)


def test_a_context_that_loses_a_cited_result_breaks_a_condition() -> None:
    sources = Sources()
    key = sources.add(ToolCall("1", "look", '{"page": 7}'), "4,200 words and 3.5 pages")
    body = [Message("assistant", f"read [r:{key}]")]
    view = View(head=(), body=body, sources=sources, held={}, count=Counter(quarter), budget=99, ask=quiet)

    def broken(summary: str, body: list[Message]) -> list[str]:
        return list(broken_conditions(view, summary, body=body, target=99))

    assert broken("- read", body) == [f"the context would lose the cited results {key}"]
    whole = view.build((), [body])
    assert broken(f"- page 7 has 4,200 words and 3.5 pages [r:{key}]", whole) == []
    assert broken(f"1. it says \u201cpages\u201d [r:{key}]", whole) == []
    assert broken(f"- 200 words [r:{key}]", whole) == [
        f"the number 200 is not in the results that its line cites ({key})"
    ]
    assert broken("- page 7", whole) == ["the number 7 is not in any result: its line cites none"]


def test_a_second_summary_may_be_accepted() -> None:
    written: list[str] = []

    async def model(request: Request) -> Reply:
        if request.role == "summariser":
            written.append(["- 5 words", "- nothing found"][len(written) % 2])
            return say(written[-1])
        turn = sum(message.role == "assistant" for message in request.messages)
        return say("done") if len(written) >= 2 else look(turn, 600)

    trace = run(AgentLoop(context=Summarise(), budget=BUDGET), model)
    assert trace.context(trace.turns[-1].index)[1].text == f"{SUMMARY}\n- nothing found"


@pytest.mark.parametrize("summary", ["- pages read", "- 5 pages read"])
def test_a_large_result_prevents_no_summary_and_is_not_clipped_by_one(summary: str) -> None:
    asked: list[int] = []

    async def model(request: Request) -> Reply:
        if request.role == "summariser":
            return say(summary)
        turn = len(asked)
        asked.append(len(texts(request, "tool")[-1]) if turn else 0)
        return say("done") if turn == 5 else look(turn, 4_000 if turn == 3 else 400)

    trace = run(AgentLoop(context=Summarise(), budget=BUDGET), model)
    roles = [turn.role for turn in trace.turns]
    assert roles.index("summariser") == 4
    assert asked[4] > 4_000
    after = texts(Request(messages=trace.context(roles.index("agent", 4)), tools=()), "user")
    assert after[1:] == ([] if "5" in summary else [f"{SUMMARY}\n{summary}"])


def test_a_fold_keeps_the_newest_turns_and_earlier_summaries() -> None:
    prompts: list[str] = []
    most = [0, 0]

    async def model(request: Request) -> Reply:
        if request.role == "summariser":
            prompts.append(texts(request, "user")[-1])
            return say("- pages read. " + "Nothing of note. " * 20)
        summaries = sum(text.startswith(SUMMARY) for text in texts(request, "user"))
        if summaries > most[0]:
            most[:] = summaries, sum(message.role == "tool" for message in request.messages)
        return say("done") if len(prompts) == 9 else look(len(request.messages), 400)

    assert run(AgentLoop(context=Fold(keep=2), budget=BUDGET), model).score == 1.0
    assert most == [4, 2]
    assert [prompt.count(SUMMARY) for prompt in prompts] == [0, 0, 0, 0, 4, 0, 0, 0, 4]


def test_a_full_context_is_shortened_to_three_quarters() -> None:
    model = Lines(*(look(page, 20) for page in range(200)), say("done"))
    trace = run(AgentLoop(budget=BUDGET), model)
    view = View(head=(), body=[], sources=Sources(), held={}, count=Counter(quarter), budget=None, ask=quiet)
    sizes = [view.tokens(request.messages) for request in model.asked]
    shortened = [after for before, after in itertools.pairwise(sizes) if after < before]
    assert all(BUDGET * 0.7 < size <= BUDGET * 0.76 for size in shortened)
    assert 3 < len(shortened) == trace.turns[-1].branch < 20


def test_a_function_may_write_the_summary() -> None:
    async def write(prompt: str) -> str:
        return "- pages read"

    for by in (lambda prompt: "- pages read", write):
        model = Lines(*(look(page, 600) for page in range(12)), say("done"))
        trace = run(AgentLoop(context=Fold(by=by), budget=BUDGET), model)
        assert {turn.role for turn in trace.turns} == {"agent"}
        assert f"{SUMMARY}\n- pages read" in texts(model.asked[-1], "user")


def test_an_episode_may_end_within_a_summary() -> None:
    model = Lines(*(look(page, 600) for page in range(20)), summariser=[say("- 5 words")] * 9)
    for turns in (8, 9, 10, 11):
        model = Lines(*(look(page, 600) for page in range(20)), summariser=[say("- 5 words")] * 9)
        assert run(AgentLoop(context=Summarise(), budget=BUDGET), model, max_turns=turns).reason == "max_turns"


def test_calls_of_a_summariser_are_not_made() -> None:
    async def model(request: Request) -> Reply:
        if request.tools:
            turn = sum(message.role == "assistant" for message in request.messages)
            return say("done") if any(SUMMARY in text for text in texts(request, "user")) else look(turn, 600)
        return say("- pages read", ("look", '{"page": 1}'))

    trace = run(AgentLoop(context=Summarise(by="agent"), budget=BUDGET, system="Read."), model)
    written = [turn for turn in trace.turns if turn.reply.message.text == "- pages read"]
    assert written
    assert not any(turn.steps or turn.reply.message.calls for turn in written)


def test_one_result_beyond_the_budget_is_clipped() -> None:
    model = Lines(look(1, 100_000), say("done"))
    run(AgentLoop(budget=BUDGET), model)
    (text,) = texts(model.asked[1], "tool")
    found = re.search(r"\[cut: recall\(\"\w{8}\", offset=(\d+)\) returns the rest\]$", text)
    assert found is not None
    whole = "page 1 of 1\n" + "line 1 has 37 words. " * 5000
    assert text[13 : 13 + int(found[1])] == whole[: int(found[1])]
    assert int(found[1]) > 3 * BUDGET


def test_an_episode_ends_when_a_reply_does_not_fit_the_budget() -> None:
    trace = run(AgentLoop(budget=BUDGET), Lines(look(1, text="x" * 8_000), say("done")))
    assert trace.reason == "the context does not fit its budget"


def test_strategies_name_a_wrong_setting() -> None:
    for make in (
        lambda: KeepRecent(-1),
        lambda: KeepRecent(1, batch=0),
        lambda: Summarise(at=0.3, target=0.5),
        lambda: Fold(keep=0),
        lambda: Fold(prompt="Summarise."),
        lambda: AgentLoop(budget=0),
        lambda: AgentLoop(reflect_every=-1),
    ):
        with pytest.raises(qn.DefinitionError, match="needs"):
            make()


def test_a_strategy_without_its_budget_is_a_failure_of_the_harness() -> None:
    import asyncio

    env = env_of(AgentLoop(context=Fold()))
    trace = asyncio.run(qn.rollout(env, env.tasks("train")[0], Lines(look(1)))).trace
    assert trace.failure is not None
    assert trace.failure.component == "H"
    assert "Fold needs a budget: pass AgentLoop(..., budget=TOKENS)" in trace.failure.message


def test_settings_of_a_strategy_are_in_the_fingerprint() -> None:
    def by(prompt: str) -> str:
        return ""

    loops: list[Callable[[], AgentLoop]] = [
        lambda: AgentLoop(context=KeepRecent(1)),
        lambda: AgentLoop(context=KeepRecent(2)),
        lambda: AgentLoop(context=Fold(by=by, keep=2)),
        lambda: AgentLoop(context=Fold(by=by, keep=3)),
        lambda: AgentLoop(tools=(Notes(),)),
        lambda: AgentLoop(tools=(Notes(notes=["a"]),)),
        lambda: AgentLoop(budget=5),
    ]
    assert len({env_of(make()).fingerprint for make in loops}) == len(loops)
    assert all(env_of(make()).fingerprint == env_of(make()).fingerprint for make in loops)


class Wanderer:
    """Model that reads pages of random lengths, cites random results, and writes summaries of which some are false."""

    def __init__(self, seed: int, turns: int) -> None:
        self.seed, self.turns = seed, turns
        self.known: list[str] = ["00000000"]
        self.results: dict[str, str] = {}

    async def __call__(self, request: Request) -> Reply:
        dice = random.Random(f"{self.seed}/{request.seed}")
        if request.role != "agent":
            return say("\n".join(self.claim(dice) for _ in range(dice.randrange(6))))
        self.check(request)
        if not self.turns:
            return say("done")
        self.turns -= 1
        calls = []
        for _ in range(dice.randrange(1, 4)):
            page, length = dice.randrange(50), int(10 ** dice.uniform(1, 4))
            choices = [("look", f'{{"page": {page}, "length": {length}}}'), ("fail", "{}"), ("nothing", "{}")]
            choices.append(("recall", f'{{"id": "{dice.choice(self.known)}"}}'))
            calls.append(dice.choices(choices, [6, 1, 1, 2])[0])
        return say(self.claim(dice), *calls)

    def claim(self, dice: random.Random) -> str:
        words = dice.choice(["it is red", "it has 37 words", "page 1", 'it says "words"', ""])
        return f"- {words} " + " ".join(f"[r:{dice.choice(self.known)}]" for _ in range(dice.randrange(4)))

    def check(self, request: Request) -> None:
        """Asserts the invariant: what a claim cites stands in the context, and the context fits its budget."""
        head, body = request.messages[:1], list(request.messages[1:])
        self.known += [key for key in ids(request) if key not in self.known]
        shown = references(body)
        for message in body:
            if message.role != "tool" and not message.text.startswith(INDEX):
                cited = set(CITATION.findall(full_text(message)))
                assert cited & set(self.known[1:]) <= shown, message
        size = sum(-(-len(full_text(message)) // 4) + 4 for message in (*head, *body))
        assert size <= BUDGET, size


CONTEXTS: tuple[Any, ...] = (
    None,
    KeepRecent(3),
    KeepRecent(2, batch=5),
    Rebuild(lambda view: f"{len(view.sources.entries)} results, the last: {list(view.sources.entries)[-1:]}", keep=2),
    Summarise(),
    Fold(),
    Fold(by=lambda prompt: f"- read {len(prompt) // 1000}"),
)


def wander(seed: int, turns: int, context: Any) -> None:
    model = Wanderer(seed, turns)
    trace = run(AgentLoop(context=context, budget=BUDGET), model)
    assert (trace.score, trace.reason) == (1.0, "the agent answered")
    sources = Sources()
    for turn in trace.turns:
        for step in turn.steps:
            assert plain(sources.recall(sources.add(step.call, step.observation))) == plain(step.observation)
    assert set(model.known[1:]) >= sources.entries.keys()


@settings(max_examples=100)
@given(st.integers(0, 2**32), st.integers(1, 40), st.sampled_from(CONTEXTS))
def test_a_cited_result_is_never_lost_and_the_context_fits(seed: int, turns: int, context: Any) -> None:
    wander(seed, turns, context)


@pytest.mark.slow
@settings(max_examples=20)
@given(st.integers(0, 2**32), st.integers(500, 600), st.sampled_from(CONTEXTS))
def test_a_cited_result_is_never_lost_in_long_episodes(seed: int, turns: int, context: Any) -> None:
    wander(seed, turns, context)


def test_a_source_shows_its_calls() -> None:
    assert Source("text", ("look {}",)).text == "look {}\ntext"


def test_a_view_counts_calls_and_messages() -> None:
    message = Message("assistant", "12345678", (ToolCall("1", "look", "{}"),))
    assert full_text(message) == "12345678\nlook {}"
