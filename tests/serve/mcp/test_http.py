"""An episode at its address, played by the official client in all of its modes."""

from __future__ import annotations

import asyncio
import base64
import gc
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

import quintain as qn
from quintain.harnesses import Dialogue
from quintain.models import Scripted
from quintain.replay import replay
from quintain.serve.episodes.host import EpisodeSpec
from quintain.serve.http.keys import ANYONE
from quintain.trace import Image, Message, Reply, Text
from tests.serve.environments import Gates, counter, gated, rough, words
from tests.serve.mcp.episodes import MODES, Served, Wire, served, until

PREFIX = "dev.quintain/"
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
modes = pytest.mark.parametrize("mode", MODES)


def told(result: types.CallToolResult) -> dict[str, Any]:
    """What stands in the metadata, without our prefix."""
    return {name.removeprefix(PREFIX): value for name, value in (result.meta or {}).items() if name.startswith(PREFIX)}


def text(result: types.CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    return block.text


@modes
def test_an_episode_is_played_and_its_record_replays(mode: str) -> None:
    async def play() -> None:
        async with served(counter) as here:
            live, url = await here.open("train-3")
            async with Client(url, mode=mode) as client:
                listed = (await client.list_tools()).tools
                assert [tool.name for tool in listed] == [*counter.tools, "answer"]
                assert listed[0].input_schema == counter.tools["add"].parameters
                first = await client.call_tool("add", {"by": 3})
                assert text(first) == "The count is 3."
                assert not first.is_error
                assert told(first)["finished"] is False
                assert told(first).get("reward") is None
                last = await client.call_tool("submit", {"answer": 3})
            assert text(last) == "Handed in."
            assert told(last)["reward"] == 1.0
            assert told(last)["finished"]
            assert told(last)["validity"] == "valid"
            assert told(last)["episode"] == live.id
            for result in (first, last):
                assert result.structured_content is None
                assert "reward" not in str(result.content)
            assert (
                await replay(counter, counter.task("train", "train-3"), live.trace)
            ).to_bytes() == live.trace.to_bytes()

    asyncio.run(play())


@modes
def test_the_task_is_shown(mode: str) -> None:
    async def look() -> None:
        async with served(counter) as here:
            _, url = await here.open("train-2")
            async with Client(url, mode=mode) as client:
                assert [prompt.name for prompt in (await client.list_prompts()).prompts] == ["task"]
                messages = (await client.get_prompt("task")).messages
                said = [one.content.text for one in messages if isinstance(one.content, types.TextContent)]
                assert said == ["Be exact.", "Count to 2, then submit it."]
                if mode != "2026-07-28":  # There the client asks for nothing that it was not told to ask for.
                    assert client.instructions == "Be exact.\n\nCount to 2, then submit it."
                with pytest.raises(MCPError, match="Unknown prompt"):
                    await client.get_prompt("truth")

    asyncio.run(look())


def test_clients_come_and_go_and_the_episode_stays() -> None:
    async def play() -> None:
        async with served(counter) as here:
            live, url = await here.open("train-3")
            for count, mode in enumerate(MODES, 1):
                async with Client(url, mode=mode) as client:
                    assert text(await client.call_tool("add", {"by": 1})) == f"The count is {count}."
            assert len(live.trace.turns) == 3

    asyncio.run(play())


@modes
def test_clients_that_share_a_connection_have_their_own_ids(mode: str) -> None:
    """Each of them counts from the same number, and a program may open one for every call."""

    async def play() -> None:
        async with served(counter) as here, httpx2.AsyncClient() as shared:
            live, url = await here.open("train-5")
            said = []
            for _ in range(3):
                async with Client(streamable_http_client(url, http_client=shared), mode=mode) as client:
                    said.append(text(await client.call_tool("add", {"by": 1})))
            assert said == ["The count is 1.", "The count is 2.", "The count is 3."]
            assert len(live.trace.turns) == 3

    asyncio.run(play())


def test_episodes_do_not_mix() -> None:
    async def count(here: Served, number: int) -> None:
        live, url = await here.open("train-5")
        async with Client(url, mode=MODES[number % 3]) as client:
            for n in range(1, 5):
                assert text(await client.call_tool("add", {"by": number})) == f"The count is {number * n}."
            last = await client.call_tool("submit", {"answer": 5})
        assert told(last)["episode"] == live.id

    async def play() -> None:
        async with served(counter) as here:
            await asyncio.gather(*(count(here, number) for number in range(1, 10)))

    asyncio.run(play())


@modes
def test_after_the_end_every_call_is_refused_and_the_reward_is_told_once(mode: str) -> None:
    async def play() -> None:
        async with served(counter) as here:
            live, url = await here.open("train-1")
            async with Client(url, mode=mode) as client:
                await client.call_tool("submit", {"answer": 7})
                for name, arguments in (("add", {"by": 1}), ("answer", {"text": "7"}), ("nothing", {})):
                    late = await client.call_tool(name, arguments)
                    assert late.is_error
                    assert "has ended" in text(late)
                    assert told(late)["finished"]
                    assert told(late).get("reward") is None
            assert len(live.trace.turns) == 1

    asyncio.run(play())


@modes
def test_last_words_are_a_tool(mode: str) -> None:
    async def play() -> None:
        async with served(words) as here:
            live, url = await here.open("cedar")
            async with Client(url, mode=mode) as client:
                assert text(await client.call_tool("look", {})) == "cedar"
                wrong = await client.call_tool("answer", {"words": "cedar"})
                assert wrong.is_error
                assert "`words`" in text(wrong)
                assert len(live.trace.turns) == 1
                last = await client.call_tool("answer", {"text": "cedar"})
            assert not last.content
            assert not last.is_error
            assert told(last)["reward"] == 1.0
            assert live.trace.turns[-1].reply.message.text == "cedar"

    asyncio.run(play())


@modes
def test_the_models_mistakes_are_observations(mode: str) -> None:
    async def play() -> None:
        async with served(counter, rough) as here:
            live, url = await here.open("train-1")
            async with Client(url, mode=mode) as client:
                unknown = await client.call_tool("substract", {"by": 1})
                misfit = await client.call_tool("add", {"by": "one"})
            assert unknown.is_error
            assert "'substract'" in text(unknown)
            assert misfit.is_error
            assert "`$.by`" in text(misfit)
            assert [turn.steps[0].is_error for turn in live.trace.turns] == [True, True]
            _, url = await here.open("plain", env="rough")
            async with Client(url, mode=mode) as client:
                refused = await client.call_tool("refuse", {})
            assert refused.is_error
            assert text(refused).startswith("not today")

    asyncio.run(play())


@modes
@pytest.mark.parametrize(
    ("tool", "kind"),
    [("crash", "quintain:tool_bug"), ("hang", "quintain:tool_timeout"), ("flood", "quintain:tool_bug")],
)
def test_a_broken_world_is_void_and_says_so_in_the_metadata_alone(mode: str, tool: str, kind: str) -> None:
    """Only what hangs has a time limit: on a busy machine anything may take half a second, and is late then."""
    limit = 0.5 if tool == "hang" else None
    patient = rough.replace(config=qn.Config(tool_timeout_s=limit, max_turns=20))

    async def play() -> None:
        async with served(patient) as here:
            live, url = await here.open("plain")
            async with Client(url, mode=mode) as client:
                for name, arguments in ((tool, {"megabytes": 11} if tool == "flood" else {}), ("touch", {})):
                    result = await client.call_tool(name, arguments)
                    assert result.is_error
                    assert text(result) == "error: the environment is broken"
                    assert told(result)["validity"] == "invalid"
                    assert told(result).get("reward") is None
                    assert told(result)["failure"]["kind"] == kind
            assert live.reward is None

    asyncio.run(play())


@pytest.mark.parametrize("mode", MODES[:2])
def test_a_world_that_cannot_be_built_fails_at_the_first_word(mode: str) -> None:
    async def play() -> None:
        async with served(rough) as here:
            _, url = await here.open("broken")
            with pytest.raises((MCPError, ExceptionGroup)) as raised:
                async with Client(url, mode=mode):
                    pass
            error: Exception = raised.value
            while isinstance(error, ExceptionGroup):
                error = error.exceptions[0]
            assert isinstance(error, MCPError)
            assert "broken" in error.message
            assert error.data[f"{PREFIX}failure"]["kind"] == "quintain:reset_failed"

    asyncio.run(play())


class Pictures(qn.State):
    """World with a picture."""

    @qn.tool
    def show(self) -> list[Text | Image]:
        """Show a picture."""
        return [Text("Look:"), Image("image/png", PNG)]

    @qn.tool
    def answer(self, text: str) -> str:
        """Answer.

        Args:
            text: What.
        """
        return text


@qn.reward
def seen(outcome: qn.EpisodeView[Pictures]) -> float:
    return 0.5


def gallery(split: str) -> list[qn.Task[Pictures]]:
    return [qn.Task(id="one", prompt="Look.", start=Pictures())]


pictures = qn.Environment("pictures", tasks=gallery, harness=qn.ToolLoop(), verifier=qn.Verifier(seen), state=Pictures)


@modes
def test_pictures_arrive_and_an_environments_own_answer_stays_its_own(mode: str) -> None:
    async def play() -> None:
        async with served(pictures) as here:
            _, url = await here.open()
            async with Client(url, mode=mode) as client:
                assert [tool.name for tool in (await client.list_tools()).tools] == ["show", "answer", "final_answer"]
                shown = await client.call_tool("show", {})
                words, picture = shown.content
                assert isinstance(words, types.TextContent)
                assert words.text == "Look:"
                assert isinstance(picture, types.ImageContent)
                assert picture.mime_type == "image/png"
                assert base64.b64decode(picture.data) == PNG
                assert text(await client.call_tool("answer", {"text": "mine"})) == "mine"
                assert told(await client.call_tool("final_answer", {"text": "over"}))["reward"] == 0.5

    asyncio.run(play())


@modes
def test_a_world_that_is_built_slowly_is_waited_for(mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUINTAIN_TEST_FOLDER", str(tmp_path))

    async def look(url: str) -> int:
        async with Client(url, mode=mode) as client:
            return len((await client.list_tools()).tools)

    async def play() -> None:
        async with served(gated) as here:
            _, url = await here.open("late")
            looking = asyncio.create_task(look(url))
            await until(lambda: Gates().entered("start"))
            assert not looking.done()
            Gates().open("start")
            assert await looking == len(gated.tools) + 1

    asyncio.run(play())


@pytest.mark.slow
def test_many_episodes_and_clients_leave_nothing_behind() -> None:
    async def visit(here: Served, mode: str) -> None:
        _, url = await here.open("train-1")
        async with Client(url, mode=mode) as client:
            await client.call_tool("add", {})

    async def play() -> None:
        async with served(counter) as here:
            await visit(here, "legacy")
            before = len(asyncio.all_tasks())
            for mode in MODES * 4:
                await visit(here, mode)
            gc.collect()
            assert len(asyncio.all_tasks()) <= before
            assert here.host.open == 13

    asyncio.run(play())


class Chat(qn.State):
    """Nothing but talk."""


@qn.reward
def polite(outcome: qn.EpisodeView[Chat]) -> float:
    return float("please" in "".join(turn.reply.message.text for turn in outcome.trace.turns))


def chats(split: str) -> list[qn.Task[Chat]]:
    return [qn.Task(id="one", prompt="", start=Chat(), roles={"user": "You want tea."})]


class Guest:
    """Simulated user who wants tea."""

    name = "guest"

    def model(self, task: qn.Task[Any], seed: int) -> Scripted:
        said = ("Tea, please.", "Green.", "###STOP###")
        return Scripted(Reply(Message("assistant", words)) for words in said)


chat = qn.Environment("chat", tasks=chats, harness=Dialogue(), verifier=qn.Verifier(polite), state=Chat)


def test_words_reach_whoever_talks_with_the_agent_and_theirs_come_back() -> None:
    async def play() -> None:
        async with served(chat, user=Guest()) as here:
            live, url = await here.open()
            async with Client(url, mode="legacy") as client:
                assert client.instructions == "Tea, please."
                result = await client.call_tool("answer", {"text": "Which?"})
                assert text(result) == "Green."
                last = await client.call_tool("answer", {"text": "Here you are."})
            assert told(last)["finished"]
            assert told(last)["reward"] == 1.0
            assert (await replay(chat, chat.task("train", "one"), live.trace)).to_bytes() == live.trace.to_bytes()

    asyncio.run(play())


def test_episode_of_a_client_harness_is_refused_over_mcp() -> None:
    async def play() -> None:
        async with served(counter, chat) as here:
            live = await here.host.create(EpisodeSpec(task=0, split="train", led=True), ANYONE)
            async with Wire(here.url(live.token), modern=True) as wire:
                asked = wire.request(1, "tools/call", name="add", arguments={})
                answer = await wire.http.post(wire.url, json=asked, headers=wire.headers(name="add"))
            assert answer.status_code == 409
            live = await here.host.create(EpisodeSpec(environment="chat", task=0, everyone=True), ANYONE)
            async with Client(here.url(live.token)) as client:
                result = await client.call_tool("answer", {"text": "Tea, please."})
                assert result.is_error
                assert "somebody else" in text(result)
            assert live.status == "open"
            assert not live.trace.turns

    asyncio.run(play())
