"""A tool call over the Open Reward Standard: a stream that may be lost and asked for again, and a tool that runs once.

The key of a call goes out before the tool runs. Asked again under it, the same call answers the same. A request without
a key that repeats one whose answer could not be delivered is that one again, even when the process died meanwhile: both
clients send a call anew when the connection is lost before the first frame.
"""

from __future__ import annotations

import itertools
import zlib

import msgspec

from quintain import codec
from quintain.serve.asgi import Events, Request, abreast, parsed
from quintain.serve.episodes import undelivered as unheard
from quintain.serve.episodes import words
from quintain.serve.episodes.live import Live
from quintain.serve.episodes.views import Answer, last_words
from quintain.serve.errors import Finished, Gone, Refused, Unavailable, Void
from quintain.serve.journal.entries import mark

from . import frames, wire

SETUP_S = 25.0
"""How long a request waits for its world before it is told that it is starting."""
SHORT = 4096
"""Bytes of a request that is remembered as it is, until its answer is delivered."""


_NUMBERS = itertools.count()


def _key(body: bytes) -> str:
    """A fresh key of a call: no two are alike, none is of any use in another session, and it names the request."""
    return f"{mark()}{zlib.crc32(body):08x}{next(_NUMBERS):08x}"


async def call(live: Live, request: Request, *, most: int) -> None:
    """Answer POST /call.

    Args:
        live: The session.
        request: Its body is a wire.Call.
        most: Bytes of it.

    Raises:
        Gone, Starting, Void: The session is not there to be called.
        Unavailable: The call cannot be written down.
        msgspec.DecodeError: The body is no call.
    """
    body = await request.body(most)
    asked = parsed(body, wire.Call)
    if not bytes(asked.input).startswith(b"{"):
        raise msgspec.ValidationError("Expected `object` - at `$.input`")
    await live.ready(SETUP_S)
    said = body if len(body) <= SHORT else codec.digest(body).encode()
    key = asked.task_id
    if key is None and (live.asked or live.lost):
        name = f"{zlib.crc32(body):08x}"
        key = unheard.same(live, said, lambda key: key[16:24] == name and live.gave(key))
    again = key is not None and live.knows(key)
    events = Events(request)
    if key is None:
        key = _key(body)
    elif not (again or key in live.asked or live.gave(key)):
        await events.open(frames.error("unknown task_id"))
        await events.close()
        return
    if not again:
        live.room(2 * len(body))
    mine = live.asked[key] = (said, request.gone, unheard.FOREVER)
    is_told = False
    try:
        await events.open(frames.task(key))
        await abreast()
        *parts, last = await events.during(_answered(live, asked, key, again=again))
        await abreast()
        for part in parts:
            await events.send(part)
        # A long answer may have to wait for its client, who may leave instead of reading the end.
        is_told = await events.send(last) if parts else not request.gone()
        await events.close(b"" if parts else last)
    finally:
        if is_told:
            unheard.heard(live, key)
        elif live.asked.get(key) is mine:  # Whoever has asked for it since may have been told.
            unheard.left(live, key, said)


async def _answered(live: Live, asked: wire.Call, key: str, *, again: bool) -> list[bytes]:
    """The frames after the first."""
    try:
        answer = await _done(live, asked, key, again=again)
    except Finished as error:
        return list(frames.cut(_failed(str(error), "episode_finished")))
    except Refused as error:
        return list(frames.cut(_failed(f"Tool input validation error: {error}", "input_validation")))
    except (Void, Gone, Unavailable) as error:
        return [frames.error(str(error))]
    return list(frames.cut(_document(asked.name, answer)))


async def _done(live: Live, asked: wire.Call, key: str, *, again: bool) -> Answer:
    if again and (answers := await live.again(key)) is not None:
        return answers[-1]
    if asked.name == last_words(live.env):
        return await live.answer(words.said(asked.input), key=key)
    return await live.call(asked.name, bytes(asked.input).decode(), key=key)


def _document(name: str, answer: Answer) -> bytes:
    # An error has no place for a reward, so a mistake that was one too many is told as what it is: the end.
    if answer.reason == "not_found" and not answer.finished:
        return _failed(f"'{name}' is not a valid tool", "not_found")
    if answer.reason and not answer.finished:
        return _failed(f"Tool input validation error: {_text(answer)}", answer.reason)
    output = wire.Output(wire.blocks(answer.content), answer.meta, answer.reward, answer.finished)
    return codec.json(wire.Done(output))


def _failed(words: str, reason: str) -> bytes:
    return codec.json(wire.Failed(words, reason))


def _text(answer: Answer) -> str:
    return answer.content if isinstance(answer.content, str) else ""
