"""Engine: its tokens and logprobs are those of transformers, whatever shares a pass and whenever weights change."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

import quintain as qn
from quintain.errors import UsageError
from quintain.harness import Model, Session
from quintain.trace import Message
from quintain.train import engine as module
from quintain.train.engine import ChatRequest, Engine, parse
from tests.train import tiny

torch, transformers = tiny.torch, tiny.transformers
Completion = dict[str, Any]


@pytest.fixture(scope="module")
def shared() -> Iterator[Engine]:
    engine = Engine(tiny.model(), tiny.tokenizer())
    yield engine
    engine.close()


@pytest.fixture
def own() -> Iterator[Engine]:
    engine = Engine(tiny.model(), tiny.tokenizer(), slots=8)
    yield engine
    engine.close()


def chat(*said: str | Completion, **fields: Any) -> ChatRequest:
    """Returns a request of a user's texts and of replies."""
    messages = [{"role": "user", "content": one} if isinstance(one, str) else message(one) for one in said]
    return msgspec.convert({"messages": messages, "max_tokens": 30, **fields}, ChatRequest)


def ask(engine: Engine, *requests: ChatRequest) -> list[Completion]:
    async def together() -> list[Completion]:
        return await asyncio.gather(*map(engine.complete, requests))

    return asyncio.run(together())


def prompt(completion: Completion) -> list[int]:
    return list(completion["prompt_token_ids"])


def drawn(completion: Completion) -> list[int]:
    return list(completion["choices"][0]["token_ids"])


def logprobs(completion: Completion) -> list[float]:
    return [one["logprob"] for one in completion["choices"][0]["logprobs"]["content"]]


def message(completion: Completion) -> dict[str, Any]:
    return dict(completion["choices"][0]["message"])


def expected(model: Any, completion: Completion, *, temperature: float = 1.0) -> list[float]:
    """Returns the logprobs of the reply by one forward pass of transformers over all of it."""
    before, after = prompt(completion), drawn(completion)
    with torch.no_grad():
        found = torch.log_softmax(model(torch.tensor([before + after])).logits[0] / temperature, -1)
    return [found[len(before) - 1 + n, token].item() for n, token in enumerate(after)]


def passes(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Returns a list that gets the number of tokens that each pass computes."""
    counted, forward = list[int](), engine._forward

    def counting(rows: Sequence[Any], begins: Sequence[int], ends: Sequence[int]) -> Any:
        counted.append(sum(ends) - sum(begins))
        return forward(rows, begins, ends)

    monkeypatch.setattr(engine, "_forward", counting)
    return counted


def write(engine: Engine, ids: Sequence[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the model draw these ids, whatever it wants."""
    draw, todo = engine._draw, list(ids)

    def forced(rows: Sequence[Any], logits: Any) -> None:
        logits[:] = -100.0
        logits[:, todo.pop(0)] = 100.0
        draw(rows, logits)

    monkeypatch.setattr(engine, "_draw", forced)


# --- numbers ---


@pytest.mark.parametrize("prefill", [5, 512])
def test_logprobs_equal_those_of_transformers(shared: Engine, prefill: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PREFILL", prefill)
    texts = ["short", "a longer text, which differs", "a longer text, which goes on and on " * 5]
    first = ask(shared, *(chat(texts[n % 3], seed=n, max_tokens=1 + 7 * n % 40) for n in range(40)))
    again = ask(shared, *(chat(texts[n % 3], one, "more", seed=n) for n, one in enumerate(first)))
    for one in first + again:
        assert logprobs(one) == pytest.approx(expected(shared.network, one), abs=1e-5)


def test_logprobs_are_those_of_the_temperature_before_top_p(shared: Engine) -> None:
    for one in ask(shared, *(chat("hi", seed=n, temperature=1.7, top_p=0.5) for n in range(8))):
        assert logprobs(one) == pytest.approx(expected(shared.network, one, temperature=1.7), abs=1e-5)


def test_greedy_drawing_equals_generate(shared: Engine) -> None:
    asked = [chat(f"question {'very ' * n}{n}", temperature=0) for n in range(8)]
    for one in ask(shared, *asked):
        before = torch.tensor([prompt(one)])
        wanted = shared.network.generate(before, do_sample=False, max_new_tokens=30)[0, before.shape[1] :]
        assert drawn(one) == wanted.tolist()


def test_tokens_are_drawn_as_often_as_they_are_likely(shared: Engine) -> None:
    found = ask(shared, *(chat("hi", seed=n, max_tokens=1) for n in range(2000)))
    counts = Counter(drawn(one)[0] for one in found)
    with torch.no_grad():
        chances = torch.softmax(shared.network(torch.tensor([prompt(found[0])])).logits[0, -1], -1).tolist()
    for token, chance in enumerate(chances):
        assert counts[token] / 2000 == pytest.approx(chance, abs=4 * (chance / 2000) ** 0.5 + 1e-3)


def test_top_p_draws_from_the_nucleus_only(shared: Engine) -> None:
    found = ask(shared, *(chat("hi", seed=n, max_tokens=1, top_p=0.3) for n in range(200)))
    with torch.no_grad():
        chances = torch.softmax(shared.network(torch.tensor([prompt(found[0])])).logits[0, -1], -1)
    best, order = chances.sort(descending=True)
    nucleus = order[: int((best.cumsum(0) < 0.3).sum()) + 1].tolist()
    assert {drawn(one)[0] for one in found} <= set(nucleus)
    assert len({drawn(one)[0] for one in found}) == len(nucleus)


def test_a_seed_repeats_a_reply_in_other_company(shared: Engine) -> None:
    (alone,) = ask(shared, chat("hi", seed=7))
    company = ask(shared, *(chat("hi", seed=n) for n in range(10)))
    assert drawn(company[7]) == drawn(alone)
    assert len({tuple(drawn(one)) for one in company}) == 10


# --- caches and conversations ---


def test_a_group_computes_its_prompt_once(own: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = passes(own, monkeypatch)
    found = ask(own, *(chat("a prompt of some length", seed=n, max_tokens=1) for n in range(8)))
    assert sum(counted) == len(prompt(found[0])) + 7


def test_the_next_turn_computes_only_what_is_new(own: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    (first,) = ask(own, chat("a prompt of some length", seed=1))
    counted = passes(own, monkeypatch)
    (second,) = ask(own, chat("a prompt of some length", first, "go on", seed=2, max_tokens=1))
    known = prompt(first) + drawn(first)
    assert prompt(second)[: len(known)] == known
    assert sum(counted) == len(prompt(second)) - len(known) + 1  # The last drawn one was not computed yet.


def test_more_requests_than_slots_are_all_answered(own: Engine) -> None:
    found = ask(own, *(chat(f"{n % 5} is the number", seed=n) for n in range(50)))
    assert len(found) == 50
    for one in found:
        assert logprobs(one) == pytest.approx(expected(own.network, one), abs=1e-5)


def test_drawn_ids_are_in_the_next_prompt_when_their_text_has_other_ids(
    own: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    letters = own.tokenizer.convert_tokens_to_ids(list(tiny.CALLS[0]))
    write(own, [*letters, own.tokenizer.eos_token_id], monkeypatch)
    (first,) = ask(own, chat("press", seed=1, max_tokens=200))
    monkeypatch.undo()
    assert [call["function"]["name"] for call in message(first)["tool_calls"]] == ["press"]
    (second,) = ask(own, chat("press", first, "click", max_tokens=3))
    whole = prompt(first) + drawn(first)
    assert prompt(second)[: len(whole)] == whole
    assert own.tokenizer.decode(prompt(second)[len(whole) :]).startswith("\n<|im_start|>user\nclick")
    assert len(own._tokens(tiny.CALLS[0])) == 1


def test_a_reply_that_was_cut_off_is_ended_in_the_next_prompt(own: Engine) -> None:
    (first,) = ask(own, chat("hi", seed=3, max_tokens=2))
    assert first["choices"][0]["finish_reason"] == "length"
    (second,) = ask(own, chat("hi", first, "more", max_tokens=1))
    whole = prompt(first) + drawn(first)
    assert prompt(second)[: len(whole)] == whole
    assert own.tokenizer.decode(prompt(second)[len(whole) :]).startswith("<|im_end|>\n<|im_start|>user\nmore")


def test_drawn_ids_are_in_the_next_prompt_when_the_template_drops_thoughts(
    own: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = own._tokens("<think>hm</think>yes")
    write(own, [*said, own.tokenizer.eos_token_id], monkeypatch)
    (first,) = ask(own, chat("sure?", seed=1, max_tokens=200))
    monkeypatch.undo()
    dropping = tiny.TEMPLATE.replace("{{ message.content }}", "{{ message.content.split('</think>')[-1] }}")
    monkeypatch.setattr(own.tokenizer, "chat_template", dropping.replace("{{ START }}", tiny.START))
    assert "hm" not in own._render(chat("sure?", first, "really?"), chat("sure?", first, "really?").messages)
    (second,) = ask(own, chat("sure?", first, "really?", max_tokens=1))
    whole = prompt(first) + drawn(first)
    assert prompt(second)[: len(whole)] == whole


def test_a_conversation_with_other_tools_is_rendered_anew(own: Engine) -> None:
    (first,) = ask(own, chat("hi", seed=1))
    tool = {"type": "function", "function": {"name": "press", "parameters": {}}}
    (second,) = ask(own, chat("hi", first, "more", tools=[tool], max_tokens=1))
    assert own.tokenizer.decode(prompt(second)).startswith("<|im_start|>tools\npress<|im_end|>")


class Note(qn.State):
    pass


class Talk(msgspec.Struct, frozen=True):
    """Harness that lets the model speak three times."""

    async def play(self, session: Session, model: Model) -> None:
        for _ in range(3):
            await session.step(await model(session.request()))
            session.append(Message("user", "more"))
        session.terminate("over")


@qn.reward
def lower(view: qn.EpisodeView[Note]) -> float:
    said = "".join(turn.reply.message.text for turn in view.trace.turns)
    return sum(letter.islower() for letter in said) / (len(said) + 1)


def test_an_episode_is_one_row_though_the_model_writes_what_it_likes(own: Engine) -> None:
    task = qn.Task(id="talk", prompt="Say something.", start=Note())
    config = qn.Config(max_reply_tokens=12)
    env = qn.Environment(
        "talk", tasks=lambda _: [task], harness=Talk(), verifier=qn.Verifier(lower), state=Note, config=config
    )

    async def play() -> list[qn.Trajectory]:
        return [row async for group in qn.rollouts(env, own, [task], group=16) for row in qn.trajectories(group.traces)]

    rows = asyncio.run(play())
    assert [(len(row.turns), row.branch) for row in rows] == [(3, 0)] * 16
    assert all(row.versions == [(first, 0) for _, first, _ in row.turns] for row in rows)
    assert len({row.score for row in rows}) > 4


class Panel(qn.State):
    pressed: str = ""

    @qn.tool
    def press(self, button: str) -> str:
        """Press a button.

        Args:
            button: Its colour.
        """
        self.pressed = button
        return "click"


@qn.reward
def green(view: qn.EpisodeView[Panel]) -> float:
    return float(view.state.pressed == "green")


def test_a_drawn_call_runs_the_tool_and_its_result_is_read(own: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    end = own.tokenizer.eos_token_id
    write(own, [*own._tokens(tiny.CALLS[1]), end, *own._tokens("done"), end], monkeypatch)
    task = qn.Task(id="green", prompt="Press green.", start=Panel())
    env = qn.Environment(
        "panel", tasks=lambda _: [task], harness=qn.ToolLoop(), verifier=qn.Verifier(green), state=Panel
    )
    trace = asyncio.run(qn.rollout(env, task, own)).trace
    (row,) = qn.trajectories([trace])
    assert trace.score == 1.0
    assert [turn.reply.message.text for turn in trace.turns] == ["", "done"]
    assert len(row.turns) == 2
    assert "tool\nclick" in own.tokenizer.decode(row.token_ids)


# --- weights ---


def swap(engine: Engine, request: ChatRequest, weights: dict[str, Any], after: int) -> Completion:
    """Changes the weights to version 5 when this many tokens of a reply are drawn."""
    draw, reached, going = engine._draw, threading.Event(), threading.Event()

    def watched(rows: Sequence[Any], logits: Any) -> None:
        draw(rows, logits)
        if len(rows[0].logprobs) == after:
            reached.set()
            going.wait()

    engine._draw = watched  # type: ignore[method-assign]

    def change() -> None:
        reached.wait()
        threading.Timer(0.05, going.set).start()
        engine.pause()
        engine.update(weights, 5)
        engine.resume()

    thread = threading.Thread(target=change)
    thread.start()
    (found,) = ask(engine, request)
    thread.join()
    return found


def test_a_swap_in_flight_shows_two_versions_and_the_logprobs_of_both(own: Engine) -> None:
    old, new = tiny.model(), tiny.model(seed=1)
    found = swap(own, chat("hi", seed=2, max_tokens=20), new.state_dict(), after=4)
    versions = found["choices"][0]["token_versions"]
    assert versions == [0] * 4 + [5] * (len(versions) - 4)
    assert found["policy_version"] == 5
    wanted = expected(old, found)[:4] + expected(new, found)[4:]
    assert logprobs(found) == pytest.approx(wanted, abs=1e-5)


def test_a_paused_engine_draws_nothing(own: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = passes(own, monkeypatch)

    async def play() -> tuple[int, Completion]:
        own.pause()
        asked = asyncio.create_task(own.complete(chat("hi")))
        await asyncio.sleep(0.1)
        before = len(counted)
        own.resume()
        return before, await asked

    before, found = asyncio.run(play())
    assert before == 0
    assert drawn(found)


def test_weights_come_from_a_folder(own: Engine, tmp_path: Path) -> None:
    tiny.model(seed=1).save_pretrained(tmp_path)
    own.update(tmp_path, 1)
    (found,) = ask(own, chat("hi", seed=1))
    assert logprobs(found) == pytest.approx(expected(tiny.model(seed=1), found), abs=1e-5)


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ({"model.norm.weight": "zeros"}, r"'model.norm.weight' is \(3,\), the model's is \(32,\); send weights of the"),
        ({"lm_head.weight": "fits", "norm": "zeros"}, "no weight 'norm'; it has model.embed_tokens.weight"),
        ({"lm_head.weight": "broken"}, "'lm_head.weight' of version 1 has NaN or infinity; stop the trainer"),
        ("/no/such/file", "no safetensors at '/no/such/file'; give a file, or a folder"),
    ],
)
def test_wrong_weights_change_nothing_and_are_named(own: Engine, weights: Any, words: str) -> None:
    fits = torch.zeros_like(own.network.lm_head.weight)
    made = {"zeros": torch.zeros(3), "fits": fits, "broken": fits / 0}
    with pytest.raises(UsageError, match=words):
        own.update(weights if isinstance(weights, str) else {n: made[kind] for n, kind in weights.items()}, 1)
    assert torch.equal(own.network.lm_head.weight, tiny.model().lm_head.weight)
    assert own.version == 0


# --- trouble ---


def test_an_error_of_the_model_ends_its_replies_and_no_later_ones(own: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(own, "_draw", fail)
    with pytest.raises(RuntimeError, match="out of memory"):
        ask(own, chat("hi"))
    monkeypatch.undo()
    (found,) = ask(own, chat("hi", seed=1))
    assert logprobs(found) == pytest.approx(expected(own.network, found), abs=1e-5)


def test_a_cancelled_request_gives_its_slot_back(own: Engine) -> None:
    async def play() -> None:
        own.pause()
        asked = [asyncio.create_task(own.complete(chat("hi", max_tokens=400))) for _ in range(8)]
        await asyncio.sleep(0)
        own.resume()
        await asyncio.sleep(0.05)
        for one in asked:
            one.cancel()
        await asyncio.wait_for(own.complete(chat("hi", max_tokens=1)), 60)

    asyncio.run(play())
    assert len(own._slots.free) == 8


def test_a_closed_engine_ends_what_is_in_play_and_takes_no_more(own: Engine) -> None:
    async def play() -> None:
        own.pause()
        first = asyncio.create_task(own.complete(chat("hi")))
        await asyncio.sleep(0.05)  # The engine has taken it; the second one is still on its way.
        second = asyncio.create_task(own.complete(chat("hi")))
        await asyncio.sleep(0.05)
        own.close()
        for asked in (first, second):
            with pytest.raises(UsageError, match="the engine was closed while it drew this reply"):
                await asyncio.wait_for(asked, 60)
        with pytest.raises(UsageError, match="the engine is closed; make another one"):
            await own.complete(chat("hi"))

    asyncio.run(play())


def test_a_prompt_without_room_for_a_reply_is_refused(shared: Engine) -> None:
    with pytest.raises(UsageError, match=r"the prompt has \d+ tokens, and prompt and reply together at most 512"):
        ask(shared, chat("x" * 600))
    (found,) = ask(shared, chat("x" * 470, max_tokens=None))
    assert len(prompt(found)) + len(drawn(found)) <= 512


def test_a_template_that_raises_is_named(shared: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared.tokenizer, "chat_template", "{{ raise_exception('no users here') }}")
    with pytest.raises(UsageError, match="the chat template refuses the messages: no users here"):
        ask(shared, chat("hi"))


def test_models_and_tokenizers_of_other_kinds_are_refused() -> None:
    model, words = tiny.model(), tiny.tokenizer()
    words.chat_template = None
    with pytest.raises(UsageError, match="tokenizer with a chat template"):
        Engine(model, words)
    config = transformers.Qwen2Config(
        vocab_size=32, hidden_size=64, num_hidden_layers=2, use_sliding_window=True, max_window_layers=0
    )
    with pytest.raises(UsageError, match=r"full attention in all layers.*sliding_attention"):
        Engine(transformers.Qwen2ForCausalLM(config), tiny.tokenizer())


# --- calls in text ---


@pytest.mark.parametrize(
    ("said", "content", "calls"),
    [
        ("hello", "hello", []),
        ('<tool_call>{"name": "a", "arguments": {"x":  1}}</tool_call>', "", [("a", '{"x":  1}')]),
        ('so\n<tool_call>\n{"name": "a"}\n</tool_call>', "so", [("a", "{}")]),
        ('<tool_call>{"name": "a"}</tool_call><tool_call>{"name": "b"}</tool_call>', "", [("a", "{}"), ("b", "{}")]),
        ("<tool_call>{'name': 'a'}</tool_call> ", "<tool_call>{'name': 'a'}</tool_call> ", []),
        ('<tool_call>{"arguments": {}}</tool_call>', '<tool_call>{"arguments": {}}</tool_call>', []),
        ('<tool_call>{"name": "a"}', '<tool_call>{"name": "a"}', []),
        ('<tool_call>[</tool_call> <tool_call>{"name": "a"}</tool_call>', "<tool_call>[</tool_call>", [("a", "{}")]),
    ],
)
def test_calls_are_parsed_and_malformed_ones_are_text(said: str, content: str, calls: list[tuple[str, str]]) -> None:
    found, parsed = parse(said, "7")
    assert found == content
    assert [(call.function.name, call.function.arguments) for call in parsed] == calls
    assert [call.id for call in parsed] == [f"call_7_{n}" for n in range(len(calls))]
