"""Endpoint: what comes over HTTP is what the engine drew, and what goes wrong has a name."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import quintain as qn
from quintain.errors import ModelError, QuintainError, UsageError
from quintain.harness import Request
from quintain.models import OpenAI
from quintain.trace import Message, Reply, Trace
from tests.train import tiny

pytest.importorskip("uvicorn", reason="pip install '.[train]'")
httpx: Any = pytest.importorskip("httpx", reason="pip install '.[train]'")

from quintain.train.control import Control  # noqa: E402
from quintain.train.endpoint import serve  # noqa: E402
from quintain.train.engine import Engine  # noqa: E402


@pytest.fixture
def engine() -> Iterator[Engine]:
    made = Engine(tiny.model(), tiny.tokenizer())
    yield made
    made.close()


@pytest.fixture
def url(engine: Engine) -> Iterator[str]:
    with serve(engine) as address:
        yield address


def request(seed: int) -> Request:
    return Request(messages=[Message("user", "hi")], tools=[], seed=seed, max_tokens=20)


def client(url: str, **options: Any) -> contextlib.aclosing[OpenAI]:
    return contextlib.aclosing(OpenAI("local", base_url=url, api_key="", **options))


def over_http(url: str, *requests: Request, **options: Any) -> list[Reply]:
    async def ask() -> list[Reply]:
        async with client(url, tokens=True, **options) as model:
            return await asyncio.gather(*map(model, requests))

    return asyncio.run(ask())


def test_replies_over_http_are_those_of_the_engine(engine: Engine, url: str) -> None:
    async def inside() -> list[Reply]:
        return [await engine(request(seed)) for seed in range(5)]

    for outside, inner in zip(over_http(url, *map(request, range(5))), asyncio.run(inside()), strict=True):
        assert outside.tokens is not None
        assert inner.tokens is not None
        assert outside.tokens.logprobs == pytest.approx(inner.tokens.logprobs, abs=1e-5)
        same = msgspec.structs.replace(outside.tokens, logprobs=inner.tokens.logprobs)
        assert msgspec.structs.replace(outside, tokens=same) == inner


def test_weights_go_over_http_as_tensors_and_as_a_path(engine: Engine, url: str, tmp_path: Path) -> None:
    new = tiny.model(seed=1)
    control = Control(url)
    control.pause()
    control.update(new.state_dict(), 1)
    control.resume()
    (reply,) = over_http(url, request(1))
    assert reply.policy_version == 1
    assert tiny.torch.equal(engine.network.lm_head.weight, new.lm_head.weight)
    tiny.model(seed=2).save_pretrained(tmp_path)
    control.update(tmp_path, 2)
    control.close()
    assert tiny.torch.equal(engine.network.lm_head.weight, tiny.model(seed=2).lm_head.weight)
    assert engine.version == 2


def test_wrong_weights_and_bodies_are_refused(engine: Engine, url: str) -> None:
    with (
        contextlib.closing(Control(url)) as control,
        pytest.raises(QuintainError, match=r"400.*shape of the new 'lm_head.weight' is"),
    ):
        control.update({"lm_head.weight": tiny.torch.zeros(3)}, 1)
    base = url.removesuffix("/v1")
    for body, message in ((b"nonsense", "not safetensors"), (b"", "not safetensors")):
        answer = httpx.post(f"{base}/update_weights?version=1", content=body)
        assert answer.status_code == 400
        assert message in answer.json()["error"]["message"]
    assert "Expected `int`" in httpx.post(f"{base}/update_weights", content=b"").json()["error"]["message"]
    assert engine.version == 0


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("{", "truncated"),
        ('{"messages": []}', "length >= 1"),
        ('{"messages": [{"role": "wizard"}]}', "Invalid enum value 'wizard'"),
        ('{"messages": [{"role": "user", "content": [{"type": "image_url", "text": ""}]}]}', "image_url"),
        ('{"messages": [{"role": "user"}], "temperature": -1}', "temperature"),
        ('{"messages": [{"role": "user"}], "stop": ["x"]}', "$.stop"),
        ('{"messages": [{"role": "user"}], "n": 2}', "$.n"),
        ('{"messages": [{"role": "user"}], "stream": true}', "$.stream"),
    ],
)
def test_requests_that_cannot_be_answered_are_refused(url: str, body: str, message: str) -> None:
    answer = httpx.post(f"{url}/chat/completions", content=body)
    assert answer.status_code == 400
    assert message in answer.json()["error"]["message"]


def test_an_endpoint_that_dies_in_a_reply_makes_the_episode_invalid(
    engine: Engine, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(engine, "_draw", fail)
    with pytest.raises(ModelError, match="out of memory"):
        over_http(url, request(1), retries=0)
    env = qn.Environment(
        "one", tasks=lambda _: [task], harness=qn.ToolLoop(), verifier=qn.Verifier(never), state=Nothing
    )
    task = qn.Task(id="hi", prompt="hi", start=Nothing())

    async def play() -> Trace:
        async with client(url, retries=0) as model:
            return (await qn.rollout(env, task, model)).trace

    trace = asyncio.run(play())
    assert trace.failure is not None
    assert trace.failure.component == "model"
    assert qn.trajectories([trace]) == []


class Nothing(qn.State):
    pass


@qn.reward
def never(view: qn.EpisodeView[Nothing]) -> float:
    return 0.0


def test_the_official_client_reads_replies_and_models(engine: Engine, url: str) -> None:
    openai: Any = pytest.importorskip("openai", reason="pip install openai")
    asked: Any = {"messages": [{"role": "user", "content": "hi"}], "seed": 1, "max_tokens": 20, "logprobs": True}
    with openai.OpenAI(base_url=url, api_key="none") as official:
        assert [one.id for one in official.models.list()] == ["local"]
        found = official.chat.completions.create(model="local", **asked)
    (ours,) = over_http(url, request(1))
    assert ours.tokens is not None
    assert found.choices[0].token_ids == ours.tokens.completion
    assert [one.logprob for one in found.choices[0].logprobs.content] == pytest.approx(ours.tokens.logprobs)
    assert (found.choices[0].message.content or "") == ours.message.text
    assert found.usage.completion_tokens == len(ours.tokens.completion)


def test_a_taken_port_is_named(engine: Engine) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"cannot listen on 127.0.0.1:{port}"), serve(engine, port=port):
            pass


@pytest.mark.slow
def test_a_folder_is_served_from_a_shell(tmp_path: Path) -> None:
    tiny.model().save_pretrained(tmp_path)
    tiny.tokenizer().save_pretrained(tmp_path)
    command = [sys.executable, "-m", "quintain.train.endpoint", str(tmp_path), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as server:
        try:
            assert server.stdout is not None
            found = re.fullmatch(r"listening on (\S+)\n", server.stdout.readline())
            assert found
            (reply,) = over_http(found[1], request(1))
        finally:
            server.terminate()
    assert reply.tokens is not None
    assert len(reply.tokens.completion) <= 20
