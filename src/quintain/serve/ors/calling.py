"""A tool call over the Open Reward Standard: a stream that may be lost and resumed, and a tool that runs once.

The key of a call is sent before the tool runs. A request with this key gets the answer of that call, also from a
server that was killed and started again. A request without a key is a call of its own.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

import msgspec

from quintain import codec
from quintain.serve.episodes.live import Live
from quintain.serve.episodes.views import CallAnswer, answer_text, answer_tool
from quintain.serve.errors import Finished, Gone, Refused, Unavailable, Void
from quintain.serve.http.asgi import Events, HttpRequest, abreast, parsed

from . import frames, wire

SETUP_S = 25.0
"""Seconds that a request waits for its world before it is refused with a 503."""
_NONCE = 16
"""Hex digits of a key before its signature."""


def _new_key(live: Live) -> str:
    """Returns a fresh key of 32 hex digits, signed for this session."""
    nonce = secrets.token_hex(_NONCE // 2)
    return nonce + _signature(live, nonce)


def _is_issued(live: Live, key: str) -> bool:
    """True if this server, or the one before it, gave this key to a call of this session."""
    return hmac.compare_digest(_signature(live, key[:_NONCE]).encode(), key[_NONCE:].encode())


def _signature(live: Live, nonce: str) -> str:
    return hashlib.blake2b(nonce.encode(), key=live.token.encode()[:64], digest_size=8).hexdigest()


async def call(live: Live, request: HttpRequest, *, most: int) -> None:
    """Answers POST /call of a session; the body is a wire.Call of at most so many bytes.

    Raises:
        Gone, Starting, Void: The session cannot be called.
        Unavailable: The call cannot be journaled.
        msgspec.DecodeError: The body is not a call.
    """
    body = await request.body(most)
    wanted = parsed(body, wire.Call)
    if not bytes(wanted.input).startswith(b"{"):
        raise msgspec.ValidationError("Expected `object` - at `$.input`")
    await live.ready(SETUP_S)
    events = Events(request)
    key = _new_key(live) if wanted.task_id is None else wanted.task_id
    is_known = live.knows(key)
    if not (is_known or _is_issued(live, key)):
        await events.open(frames.error("unknown task_id"))
        await events.close()
        return
    if not is_known:
        live.room(2 * len(body))
    await events.open(frames.task(key))
    await abreast()
    *parts, last = await events.during(_answered(live, wanted, key))
    await abreast()
    for part in parts:
        await events.send(part)
    await events.close(last)


async def _answered(live: Live, wanted: wire.Call, key: str) -> list[bytes]:
    """Returns the frames after the first."""
    try:
        answer = await _done(live, wanted, key)
    except Finished as error:
        return list(frames.cut(_failed(str(error), "episode_finished")))
    except Refused as error:
        return list(frames.cut(_failed(f"Tool input validation error: {error}", "input_validation")))
    except (Void, Gone, Unavailable) as error:
        return [frames.error(str(error))]
    return list(frames.cut(_document(wanted.name, answer)))


async def _done(live: Live, wanted: wire.Call, key: str) -> CallAnswer:
    if live.knows(key) and (answers := await live.again(key)) is not None:
        return answers[-1]
    if wanted.name == answer_tool(live.env):
        return await live.answer(answer_text(wanted.input), key=key)
    return await live.call(wanted.name, bytes(wanted.input).decode(), key=key)


def _document(name: str, answer: CallAnswer) -> bytes:
    # An error has no place for a reward, so a mistake that ends the episode is sent as an output.
    if answer.reason == "not_found" and not answer.finished:
        return _failed(f"'{name}' is not a valid tool", "not_found")
    if answer.reason and not answer.finished:
        return _failed(f"Tool input validation error: {_text(answer)}", answer.reason)
    output = wire.Output(wire.blocks(answer.content), answer.metadata, answer.reward, answer.finished)
    return codec.json(wire.Done(output))


def _failed(words: str, reason: str) -> bytes:
    return codec.json(wire.Failed(words, reason))


def _text(answer: CallAnswer) -> str:
    return answer.content if isinstance(answer.content, str) else ""
