"""Handlers of episodes; their docstrings are the descriptions of the OpenAPI document."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import msgspec
from starlette.responses import Response

from quintain import codec, resource
from quintain.context import Snapshot
from quintain.environment import Environment
from quintain.episode import Episode
from quintain.serve.episodes.actions import Change, Fail, Join, Move, Terminate, compared, fingerprint
from quintain.serve.episodes.host import EpisodeSpec
from quintain.serve.episodes.live import Live
from quintain.serve.episodes.secrets import Secrets, shown
from quintain.serve.errors import Conflict, Refused, Starting, Unknown, Void
from quintain.trace import Message, Reply, ToolCall, Trace

from . import views
from .answers import CallLog, Detail, Divergence, OpenedThread, ReplayResult, ReplyResult, StateDigest, Verdict
from .bodies import Create
from .once import USED
from .routes import OCTETS, ApiCall

READY_S = 20.0
"""Seconds that an answer waits for the world to be built."""


async def create_episode(call: ApiCall) -> Detail:
    """Begin an episode. Its world is built behind; the answer waits for that a while."""
    body = call.body
    if body.harness == "client" or body.everyone or body.config is not None or body.after is not None:
        call.need("trainer", "to play all roles, or by a harness or a configuration of one's own,")
    if (made := await _made(call)) is not None:
        return await _shown(call, made)
    after = call.host.get(body.after, call.caller) if body.after is not None else None
    same = ("environment", "split", "seed", "attempt", "agent", "everyone", "config", "label")
    wanted = EpisodeSpec(
        **{name: getattr(body, name) for name in same},
        task=body.task if body.task is not None else body.index,
        member=after.trace.member if after is not None and body.member is None else body.member,
        led=body.harness == "client",
        led_by=_led_by(call.host.environment(body.environment), body),
        after=(after.trace.task, after.trace.attempt) if after is not None else None,
        start=await _world(after) if after is not None else None,
    )
    gone = after.secrets.names if after is not None else ()
    return await _created(call, wanted, secrets=call.secrets.copy(lost=gone))


async def get_episode(call: ApiCall) -> Detail:
    """Returns the state of an episode: status, validity, failure, rewards, the open question."""
    live = await _live(call)
    if call.query.wait:
        await _begun(live, call.query.wait)
    return views.detail(call, live)


async def call_tool(call: ApiCall) -> ReplyResult:
    """Have the agent make one call: a turn."""
    live = await _live(call)
    made = ToolCall(f"call_{len(live.trace.turns)}", call.body.name, bytes(call.body.arguments).decode())
    return await _acted(call, live, Reply(Message("assistant", calls=(made,))))


async def give_answer(call: ApiCall) -> ReplyResult:
    """Says words without a call; if no other actor talks with the agent, they are its last."""
    return await _acted(call, await _live(call), Reply(Message("assistant", call.body.text)))


async def give_reply(call: ApiCall) -> ReplyResult:
    """Answer the open question with a whole reply: words, calls, tokens."""
    live = await _live(call)
    if live.led:
        raise Conflict("the harness of this episode is the caller's: it makes steps")
    return await _acted(call, live, call.body.reply, whoever=True)


async def make_step(call: ApiCall) -> ReplyResult:
    """Play a reply in one of the conversations of the caller's own harness."""
    live, body = await _led(call), call.body
    move = _move(body.reply, thread=body.thread, before=body.before)
    return await _acted(call, live, move, whoever=True)


async def join(call: ApiCall) -> OpenedThread:
    """Open another actor's conversation for the caller's own harness."""
    live = await _led(call)
    place = await live.change((Join(call.body.role, call.body.messages),), key=call.key)
    session = (await live.ready(READY_S)).sessions[place]
    return OpenedThread(session.context.thread, tuple(session.messages))


async def change(call: ApiCall) -> Detail:
    """Applies what the caller's harness did besides its steps. With the server's own harness: only end the episode."""
    live = await _live(call)
    await _changed(call, live, call.body)
    return views.detail(call, live)


async def terminate(call: ApiCall) -> Detail:
    """End the episode, by the rules of the game or by a failure on the caller's side; a second time changes nothing."""
    live, body = await _live(call), call.body
    what = Terminate(body.reason) if body.failure is None else Fail(body.failure)
    await _changed(call, live, (what,))
    return views.detail(call, live)


async def verify(call: ApiCall) -> Verdict:
    """The verdict on an episode that has ended, or on a copy as though it ended now."""
    live, body = await _live(call), call.body
    if body.now:
        call.need("trainer", "a verdict before the end")
    await _changed(call, live, body.before)
    if not body.now:
        if live.trace.end is None:
            raise Conflict("the episode goes on; terminate it first, or ask for the verdict now")
        await live.judge()
        return views.verdict(live.trace, call.caller)

    async def judged(episode: Episode[Any]) -> Trace:
        twin = await episode.fork()
        twin.terminate("the verdict was call for")
        await twin.verify()
        live.secrets.strike(twin.trace)
        return twin.trace

    return views.verdict(await live.work("verify", judged), call.caller)


async def get_digest(call: ApiCall) -> StateDigest:
    """Returns the digest of the world, which is equal for worlds that behave alike."""
    return StateDigest(await (await _live(call)).work("digest", lambda episode: resource.digest(episode.state)))


async def snapshot(call: ApiCall) -> Response:
    """Everything that is needed to go on here or elsewhere, as bytes."""
    data = await (await _live(call)).work("snapshot", _frozen)
    return Response(data, media_type=OCTETS)


async def restore(call: ApiCall) -> Detail:
    """Begin an episode where a snapshot ended. Of the secrets that it had it has those that are given again."""
    if (made := await _made(call)) is not None:
        return await _shown(call, made)
    try:
        frozen = Snapshot.from_bytes(call.body)
        trace = codec.loads(frozen.trace, Trace)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise Refused(f"this is no snapshot: {error}") from error
    env = call.host.environment(trace.environment)
    if frozen.fingerprint != env.fingerprint:
        raise Conflict(f"the snapshot is of another version of {env.name}: {frozen.fingerprint}")
    wanted = _continued(
        trace,
        split=await _split(call, env, trace),
        led=call.query.harness == "client",
        led_by="" if call.query.harness == "client" else None,
        everyone=call.query.everyone,
        origin=call.body,
    )
    return await _created(call, wanted, secrets=call.secrets.copy(lost=frozen.secrets))


async def fork(call: ApiCall) -> Detail:
    """An independent twin of an episode, with its secrets; both may go on."""
    if (made := await _made(call)) is not None:
        return await _shown(call, made)
    live = await _live(call)
    await live.ready(READY_S)
    harness = live.trace.external_harness
    led_by = None if harness is msgspec.UNSET else harness
    same = {"split": live.split, "led": live.led, "led_by": led_by, "everyone": live.everyone}
    wanted = _continued(live.trace, forked=True, **same)
    if call.host.log.keeps:  # A twin that must outlive the process begins from bytes.
        wanted = msgspec.structs.replace(wanted, origin=await live.work("snapshot", _frozen))
        return await _created(call, wanted, secrets=live.secrets)
    twin = await live.work("fork", lambda episode: episode.fork())
    return await _created(call, wanted, secrets=live.secrets, twin=twin)


async def replay(call: ApiCall) -> ReplayResult:
    """Play the record of an ended episode again, and compare every byte."""
    live = await _live(call)
    episode = await live.ready(READY_S)
    trace = live.trace
    if trace.end is None:
        raise Conflict("the episode goes on; its record can be replayed when it has ended")
    start = episode.start if trace.continues else None
    kind = (live.env.name, "replay")
    found = await call.host.apart(kind, lambda: compared(live.env, live.task, trace, start=start), secrets=live.secrets)
    if found is None:
        return ReplayResult(agree=True, divergence=None)
    words = live.secrets.hidden(str(found))
    return ReplayResult(agree=False, divergence=Divergence(found.turn, found.step, found.field, words))


async def get_trace(call: ApiCall) -> Response:
    """The record: one line as it stands in a file of traces."""
    return Response((await _live(call)).trace.to_json(), media_type="application/json")


async def get_journal(call: ApiCall) -> CallLog:
    """Every call of the episode, of all roles, numbered from 0 in the order in which they were made."""
    return views.journal((await _live(call)).trace)


async def delete_episode(call: ApiCall) -> None:
    """Close an episode; nothing of it is left."""
    await call.host.close(call.names["id"], call.caller)


# -- what they share


async def _live(call: ApiCall) -> Live:
    live = call.host.get(call.names["id"], call.caller)
    await live.woken(READY_S)
    if call.key and live.clashes(call.key):
        raise Conflict(USED)
    return live


async def _led(call: ApiCall) -> Live:
    live = await _live(call)
    if not live.led:
        raise Conflict("the environment's own harness plays this episode; create it with the harness 'client'")
    return live


def _led_by(env: Environment[Any], body: Create) -> str | None:
    """Returns the fingerprint of a client-side harness for the record; None for the environment's own."""
    return None if body.harness == "server" or body.led_by == fingerprint(env.harness) else body.led_by


def _id(call: ApiCall) -> str:
    """The same for the same request, even when the server died in between."""
    if not call.name:
        return ""
    whole = f"{call.caller.name}/{call.name}"
    return call.host.ids.named(codec.digest(whole.encode()))


def _continued(trace: Trace, **more: Any) -> EpisodeSpec:
    """Returns the description of an episode that goes on from another one's record."""
    same = ("environment", "task", "config", "seed", "member", "attempt", "agent")
    return EpisodeSpec(**{name: getattr(trace, name) for name in same}, label=trace.split, **more)


async def _created(call: ApiCall, wanted: EpisodeSpec, *, secrets: Secrets, twin: Episode[Any] | None = None) -> Detail:
    wanted = msgspec.structs.replace(wanted, id=_id(call), request=call.digest)
    try:
        live = await call.host.create(wanted, call.caller, twin=twin, secrets=secrets)
    except Refused as error:  # No such split, or no such place in it: here these are names like any other.
        raise Unknown(str(error)) from error
    return await _shown(call, live)


async def _made(call: ApiCall) -> Live | None:
    """Returns the episode that this very request made before the server died."""
    if not call.name:
        return None
    try:
        live = call.host.get(_id(call), call.caller)
    except Unknown:
        return None
    if live.request != call.digest:
        raise Conflict(USED)
    # The secrets of a new one are gone with that process, so the host begins it once more.
    return None if call.secrets.names and live.is_new else live


async def _shown(call: ApiCall, live: Live) -> Detail:
    await _begun(live, READY_S)
    return views.detail(call, live)


async def _begun(live: Live, seconds: float) -> None:
    """Wait for the world, but not for ever, and whatever comes of it."""
    with contextlib.suppress(Starting, Void):
        await live.ready(seconds)


async def _acted(call: ApiCall, live: Live, reply: Reply, *, whoever: bool = False) -> ReplyResult:
    await live.ready(READY_S)
    before = live.place(call.key)  # Where a process did it that was killed: all that is left is to tell it.
    question = live.question
    if before is None and not whoever and question is not None and question.role != "agent":
        raise Conflict(f"the open question is for the {question.role}: answer it by a whole reply")
    if before is None:
        live.room(2 * len(await call.request.body(call.host.limits.body_bytes)))
    first = len(live.trace.turns) if before is None else before
    had = live.trace.failure if before is None else None
    if live.led and not isinstance(reply, Move):
        reply = _move(reply)
    try:
        answers = await live.act(reply, key=call.key)
    except Void:
        if had is not None:
            raise
        answers = []
    first = answers[0].seq if answers else first
    answered = question if before is None else None
    return views.played(call, live, first=first, answers=answers, answered=answered)


def _move(reply: Reply, **more: Any) -> Move:
    return Move(**{name: getattr(reply, name) for name in Reply.__struct_fields__}, **more)


async def _changed(call: ApiCall, live: Live, changes: Sequence[Change]) -> None:
    if any(isinstance(one, Fail) for one in changes):
        call.need("trainer", "to blame a failure")
    if not live.led and any(not isinstance(one, Terminate | Fail) for one in changes):
        raise Conflict("the environment's own harness plays this episode, and alone talks to its actors")
    if changes:
        await live.ready(READY_S)
        await live.change(tuple(changes), key=call.key)


async def _frozen(episode: Episode[Any]) -> bytes:
    return msgspec.structs.replace(await episode.snapshot(), secrets=shown().names).to_bytes()


async def _world(live: Live) -> bytes:
    """The world that an episode left, as bytes."""
    if live.trace.end is None:
        raise Conflict("the episode after which this one is to begin goes on")
    return await live.work("dump", lambda episode: resource.dump(episode.state))


async def _split(call: ApiCall, env: Environment[Any], trace: Trace) -> str:
    """The split in which a record's task is, which the record may call by another name."""
    for split in (trace.split,) if trace.split in env.splits else env.splits:
        try:
            await call.host.task(env, split, trace.task)
        except Unknown:
            continue
        return split
    raise Unknown(f"{env.name} has no task {trace.task!r}")
