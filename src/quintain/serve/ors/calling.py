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


def _signed(live: Live, nonce: str) -> str:
    """Returns the key of a call of this session, of 32 hex digits."""
    return nonce + hashlib.blake2b(nonce.encode(), key=live.token.encode()[:64], digest_size=8).hexdigest()


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
    key = _signed(live, secrets.token_hex(_NONCE // 2)) if wanted.task_id is None else wanted.task_id
    if not live.knows(key):
        # A key that this server, or the one before it, sent to a call of this session.
        if not hmac.compare_digest(_signed(live, key[:_NONCE]).encode(), key.encode()):
            await events.open(frames.error("unknown task_id"))
            await events.close()
            return
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
        document = _document(wanted.name, await _done(live, wanted, key))
    except Finished as error:
        document = codec.json(wire.Failed(str(error), "episode_finished"))
    except Refused as error:
        document = _invalid(error)
    except (Void, Gone, Unavailable) as error:
        return [frames.error(str(error))]
    return list(frames.cut(document))


async def _done(live: Live, wanted: wire.Call, key: str) -> CallAnswer:
    if live.knows(key) and (answers := await live.again(key)) is not None:
        return answers[-1]
    if wanted.name == answer_tool(live.env):
        return await live.answer(answer_text(wanted.input), key=key)
    return await live.call(wanted.name, bytes(wanted.input).decode(), key=key)


def _document(name: str, answer: CallAnswer) -> bytes:
    # An error has no place for a reward, so a mistake that ends the episode is sent as an output.
    if answer.reason == "not_found" and not answer.finished:
        return codec.json(wire.Failed(f"'{name}' is not a valid tool", "not_found"))
    if answer.reason and not answer.finished:
        return _invalid(answer.content if isinstance(answer.content, str) else "")
    output = wire.Output(wire.blocks(answer.content), answer.metadata, answer.reward, answer.finished)
    return codec.json(wire.Done(output))


def _invalid(why: object) -> bytes:
    return codec.json(wire.Failed(f"Tool input validation error: {why}", "input_validation"))
