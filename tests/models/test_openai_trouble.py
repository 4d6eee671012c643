"""An endpoint that is slow, silent, overloaded or gone, or that talks nonsense: what is retried, what is said."""

from __future__ import annotations

import asyncio
import email.utils
import gzip
import socket
import time

import msgspec
import pytest

from quintain.errors import ContextOverflow, ModelError
from quintain.models import OpenAI

from .server import (
    GOOD,
    HELLO,
    KEY,
    Action,
    answer,
    completion,
    die,
    die_in_the_middle,
    drip,
    fail,
    hang,
    play,
    raw,
    serving,
)

# --- trouble that passes ---


@pytest.mark.parametrize(
    "trouble",
    [
        answer(b"oops", 500),
        answer({"error": "busy"}, 503, Retry_After="0.001"),
        answer(b"", 408),
        answer({"error": "slow down"}, 429),
        answer({"error": "slow down"}, 429, Retry_After="nonsense"),
        die,
        die_in_the_middle,
        raw(b"what is HTTP?\r\n\r\n"),
        answer(b"{not json"),
        answer(completion(finish_reason="abort")),
    ],
)
def test_one_trouble_is_survived(trouble: Action) -> None:
    reply, server = play(trouble, GOOD)
    assert reply.message.text == "hello"
    assert len(server.requests) == 2
    assert server.requests[0] == server.requests[1]


def test_retry_after_is_honoured() -> None:
    start = time.perf_counter()
    play(answer(b"", 429, Retry_After="0.2"), GOOD)
    assert time.perf_counter() - start >= 0.2


def test_a_date_to_retry_after_is_understood() -> None:
    date = email.utils.formatdate(time.time() + 3600, usegmt=True)
    error, count = fail(answer(b"", 429, Retry_After=date), timeout_s=5)
    assert count == 1, "an hour is more than the model's time"
    assert "asks to wait 3" in str(error)


def test_slow_is_not_silent() -> None:
    assert play(drip, timeout_s=1.0)[0].message.text == "slow"


def test_the_wait_can_be_cancelled() -> None:
    async def run() -> float:
        async with serving(answer(b"", 429, Retry_After="30")) as server:
            model = OpenAI("m", base_url=server.url, timeout_s=60)
            start = time.perf_counter()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await model(HELLO)
            await model.aclose()
            return time.perf_counter() - start

    assert asyncio.run(run()) < 5


def test_the_jitter_is_drawn_from_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr("quintain.models.openai.asyncio.sleep", sleep)
    for seed in (1, 1, 2):
        fail(answer(b"", 500), request=msgspec.structs.replace(HELLO, seed=seed), backoff_s=1.0)
    first, again, other = slept[:4], slept[4:8], slept[8:]
    assert first == again != other
    assert all(2**n * 0.5 <= wait < 2**n for n, wait in enumerate(first))


# --- trouble that stays ---


@pytest.mark.parametrize(
    ("trouble", "kind", "says"),
    [
        (answer(b"oops", 500), "provider_unavailable", "status 500: oops"),
        (answer(b"", 429), "provider_quota_exhausted", "status 429"),
        (die, "transport_peer_drop", "disconnected"),
        (die_in_the_middle, "transport_peer_drop", "without sending complete"),
        (answer(completion(finish_reason="error")), "provider_unavailable", "broke off"),
    ],
)
def test_patience_ends(trouble: Action, kind: str, says: str) -> None:
    error, count = fail(trouble, retries=2)
    assert (error.kind, count) == (kind, 3)
    assert says in str(error)
    assert "(3 attempts)" in str(error)
    assert "/v1/chat/completions" in str(error)


def test_a_server_that_hangs() -> None:
    error, count = fail(hang, timeout_s=0.05, retries=1)
    assert (error.kind, count) == ("transport_timeout", 2)


def test_closed_port_is_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    error, count = fail(GOOD, base_url=f"http://127.0.0.1:{port}/v1", retries=1)
    assert (error.kind, count) == ("transport_unreachable", 0)


BAD_LOGPROB = (
    b'{"prompt_token_ids":[1],"choices":[{"message":{"content":"x"},"token_ids":[1],'
    b'"logprobs":{"content":[{"logprob":%s}]}}]}'
)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "malformed"),
        (b"<html>gateway</html>", "<html>gateway</html>"),
        (b"\xff\xfe\x00", "malformed"),
        (b"[" * 100_000, "malformed"),
        (b"{}", "choices"),
        (b'{"error": {"message": "overloaded"}}', "overloaded"),
        ({"choices": []}, "choices"),
        ({"choices": [7]}, "$.choices[0]"),
        ({"choices": [{}]}, "message"),
        ({"choices": [{"message": {"content": 7}}]}, "content"),
        ({"choices": [{"message": {"tool_calls": [{"function": {"arguments": "{}"}}]}}]}, "name"),
        (BAD_LOGPROB % b"NaN", "malformed"),
        (BAD_LOGPROB % b"null", "logprob"),
        (BAD_LOGPROB % b"1e999", "malformed"),
        (BAD_LOGPROB % b'-1},{"logprob":-1', "2 logprobs"),
        (b'{"choices": [' + b" " * 5000, "longer than 2000 bytes"),
    ],
)
def test_a_malformed_reply_is_asked_for_once_more(body: object, says: str) -> None:
    error, count = fail(answer(body), max_reply_bytes=2000 if b" " * 100 in bytes(str(body), "utf-8") else 10**6)
    assert (error.kind, count) == ("quintain:model_reply_invalid", 2)
    assert says in str(error)
    assert len(str(error)) < 700


def test_a_body_that_blows_up_when_unpacked() -> None:
    error, _ = fail(answer(gzip.compress(b" " * 10**7), Content_Encoding="gzip"), max_reply_bytes=10**6)
    assert "longer than 1000000 bytes" in str(error)


def test_a_body_that_cannot_be_unpacked() -> None:
    error, count = fail(answer(b"no gzip", Content_Encoding="gzip"))
    assert (error.kind, count) == ("quintain:model_reply_invalid", 2)


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 422])
def test_permanent_errors_are_not_retried(status: int) -> None:
    error, count = fail(answer(f"no, {KEY}: ".encode() + b"x" * 1000, status))
    assert (error.kind, count) == ("agent_request_failed", 1)
    assert f"status {status}: no, ***: xxx" in str(error)
    assert len(str(error)) < 500


def test_an_empty_purse_is_not_waited_for() -> None:
    error, count = fail(answer({"error": {"code": "insufficient_quota"}}, 429, Retry_After="1"))
    assert (error.kind, count) == ("provider_quota_exhausted", 1)


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (max_tokens).",
        "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
        "the request exceeds the available context size",
        "prompt is too long: 9000 tokens > 8192 maximum",
    ],
)
def test_a_context_that_is_too_long_is_named(message: str) -> None:
    error, count = fail(answer({"error": {"message": message}}, 400))
    assert (error.kind, count) == ("agent_request_failed", 1)
    assert isinstance(error, ContextOverflow)
    assert "the context is longer than the model takes" in str(error)


def test_secrets_in_the_address_stay_there() -> None:
    async def run() -> str:
        async with serving(answer(b"", 404)) as server:
            address = server.url.replace("http://", "http://me:pass-word@")
            model = OpenAI("m", base_url=address, api_key="")
            with pytest.raises(ModelError) as caught:
                await model(HELLO)
            await model.aclose()
            return str(caught.value)

    assert "pass-word" not in asyncio.run(run())
