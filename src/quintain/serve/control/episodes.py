"""What can be done with an episode. A handler's docstring is what the OpenAPI document says of it."""

from __future__ import annotations

import contextlib
from collections.abc import Coroutine, Sequence
from typing import Any

import msgspec

from quintain import codec, resource
from quintain.context import Snapshot
from quintain.environment import Environment
from quintain.episode import Episode
from quintain.errors import ReplayDivergence
from quintain.serve.episodes.actions import Change, Fail, Join, Move, Terminate, compared, fingerprint
from quintain.serve.episodes.host import Wanted
from quintain.serve.episodes.live import Live
from quintain.serve.episodes.secrets import Secrets, shown
from quintain.serve.errors import Conflict, Refused, Starting, Unknown, Void
from quintain.trace import Message, Reply, ToolCall, Trace

from . import telling
from .asking import Create
from .once import USED, Said
from .routes import OCTETS, Asked
from .wire import Detail, DigestTold, Divergence, Joined, JournalTold, Played, Replayed, Verdict

READY_S = 20.0
"""Seconds that an answer waits for the world to be built."""


async def create_episode(asked: Asked) -> Detail:
    """Begin an episode. Its world is built behind; the answer waits for that a while."""
    body = asked.body
    if body.harness == "client" or body.everyone or body.config is not None or body.after is not None:
        asked.need("trainer", "to play all roles, or by a harness or a configuration of one's own,")
    if (made := await _made(asked)) is not None:
        return await _shown(asked, made)
    after = asked.host.get(body.after, asked.caller) if body.after is not None else None
    wanted = Wanted(
        environment=body.environment,
        split=body.split,
        task=body.task if body.task is not None else body.index,
        id=_id(asked),
        request=asked.digest,
        seed=body.seed,
        member=after.trace.member if after is not None and body.member is None else body.member,
        attempt=body.attempt,
        agent=body.agent,
        led=body.harness == "client",
        led_by=_led_by(asked.host.environment(body.environment), body),
        everyone=body.everyone,
        config=body.config,
        label=body.label,
        after=(after.trace.task, after.trace.attempt) if after is not None else None,
        start=await _world(after) if after is not None else None,
    )
    gone = after.secrets.names if after is not None else ()
    return await _created(asked, wanted, secrets=asked.secrets.copy(lost=gone))


async def get_episode(asked: Asked) -> Detail:
    """How an episode stands: status, validity, failure, rewards, the open question."""
    live = await _live(asked)
    if asked.query.wait:
        await _begun(live, asked.query.wait)
    return telling.detail(asked, live)


async def call_tool(asked: Asked) -> Played:
    """Have the agent make one call: a turn."""
    live = await _live(asked)
    call = ToolCall(f"call_{len(live.trace.turns)}", asked.body.name, bytes(asked.body.arguments).decode())
    return await _acted(asked, live, Reply(Message("assistant", calls=(call,))))


async def give_answer(asked: Asked) -> Played:
    """Have the agent say something without calling; where nobody talks with it, its last words."""
    return await _acted(asked, await _live(asked), Reply(Message("assistant", asked.body.text)))


async def give_reply(asked: Asked) -> Played:
    """Answer the open question with a whole reply: words, calls, tokens."""
    live = await _live(asked)
    if live.led:
        raise Conflict("the harness of this episode is the caller's: it makes steps")
    return await _acted(asked, live, asked.body.reply, whoever=True)


async def make_step(asked: Asked) -> Played:
    """Play a reply in one of the conversations of the caller's own harness."""
    live, body = await _led(asked), asked.body
    move = _move(body.reply, thread=body.thread, before=body.before)
    return await _acted(asked, live, move, whoever=True)


async def join(asked: Asked) -> Joined:
    """Open another actor's conversation for the caller's own harness."""
    live = await _led(asked)
    place = await live.change((Join(asked.body.role, asked.body.messages),), key=asked.key)
    session = (await live.ready(READY_S)).sessions[place]
    return Joined(session.context.thread, tuple(session.messages))


async def change(asked: Asked) -> Detail:
    """Do what the caller's harness did beside its steps. With the server's own harness: only end the episode."""
    live = await _live(asked)
    await _changed(asked, live, asked.body)
    return telling.detail(asked, live)


async def terminate(asked: Asked) -> Detail:
    """End the episode, by the rules of the game or by a failure on the caller's side; a second time changes nothing."""
    live, body = await _live(asked), asked.body
    what = Terminate(body.reason) if body.failure is None else Fail(body.failure)
    await _changed(asked, live, (what,))
    return telling.detail(asked, live)


async def verify(asked: Asked) -> Verdict:
    """The verdict on an episode that has ended, or on a copy as though it ended now."""
    live, body = await _live(asked), asked.body
    if body.now:
        asked.need("trainer", "a verdict before the end")
    await _changed(asked, live, body.before)
    if not body.now:
        if live.trace.end is None:
            raise Conflict("the episode goes on; terminate it first, or ask for the verdict now")
        await live.judge()
        return telling.verdict(live.trace, asked.caller)

    async def judged(episode: Episode[Any]) -> Trace:
        twin = await episode.fork()
        twin.terminate("the verdict was asked for")
        await twin.verify()
        live.secrets.strike(twin.trace)
        return twin.trace

    return telling.verdict(await live.work("verify", judged), asked.caller)


async def get_digest(asked: Asked) -> DigestTold:
    """What names the world as it stands: equal for worlds that will behave alike."""

    async def digest(episode: Episode[Any]) -> str:
        return await resource.digest(episode.state)

    return DigestTold(await (await _live(asked)).work("digest", digest))


async def snapshot(asked: Asked) -> Said:
    """Everything that is needed to go on here or elsewhere, as bytes."""
    data = await (await _live(asked)).work("snapshot", _frozen)
    return Said(200, data, ((b"content-type", OCTETS.encode()),))


async def restore(asked: Asked) -> Detail:
    """Begin an episode where a snapshot ended. Of the secrets that it had it has those that are given again."""
    if (made := await _made(asked)) is not None:
        return await _shown(asked, made)
    try:
        frozen = Snapshot.from_bytes(asked.body)
        trace = codec.loads(frozen.trace, Trace)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise Refused(f"this is no snapshot: {error}") from error
    env = asked.host.environment(trace.environment)
    if frozen.fingerprint != env.fingerprint:
        raise Conflict(f"the snapshot is of another version of {env.name}: {frozen.fingerprint}")
    wanted = Wanted(
        environment=env.name,
        split=await _split(asked, env, trace),
        task=trace.task,
        id=_id(asked),
        request=asked.digest,
        led=asked.query.harness == "client",
        led_by="" if asked.query.harness == "client" else None,
        everyone=asked.query.everyone,
        label=trace.split,
        config=trace.config,
        origin=asked.body,
        seed=trace.seed,
        member=trace.member,
        attempt=trace.attempt,
        agent=trace.agent,
    )
    return await _created(asked, wanted, secrets=asked.secrets.copy(lost=frozen.secrets))


async def fork(asked: Asked) -> Detail:
    """An independent twin of an episode, with its secrets; both may go on."""
    if (made := await _made(asked)) is not None:
        return await _shown(asked, made)
    live = await _live(asked)
    await live.ready(READY_S)
    trace = live.trace
    wanted = Wanted(
        environment=live.env.name,
        split=live.split,
        task=live.task.id,
        id=_id(asked),
        request=asked.digest,
        led=live.led,
        led_by=None if trace.external_harness is msgspec.UNSET else trace.external_harness,
        everyone=live.everyone,
        label=trace.split,
        config=trace.config,
        **{name: getattr(trace, name) for name in ("seed", "member", "attempt", "agent")},
    )
    if asked.host.log.keeps:  # A twin that must outlive the process begins from bytes.
        wanted = msgspec.structs.replace(wanted, origin=await live.work("snapshot", _frozen))
        return await _created(asked, wanted, secrets=live.secrets)
    return await _created(asked, wanted, secrets=live.secrets, twin=await live.work("fork", _forked))


async def replay(asked: Asked) -> Replayed:
    """Play the record of an ended episode again, and compare every byte."""
    live = await _live(asked)
    episode = await live.ready(READY_S)
    trace = live.trace
    if trace.end is None:
        raise Conflict("the episode goes on; its record can be replayed when it has ended")
    start = episode.start if trace.continues else None

    def again() -> Coroutine[Any, Any, ReplayDivergence | None]:
        return compared(live.env, live.task, trace, start=start)

    found = await asked.host.apart((live.env.name, "replay"), again, secrets=live.secrets)
    if found is None:
        return Replayed(agree=True, divergence=None)
    words = live.secrets.hidden(str(found))
    return Replayed(agree=False, divergence=Divergence(found.turn, found.step, found.field, words))


async def get_trace(asked: Asked) -> Said:
    """The record: one line as it stands in a file of traces."""
    return Said(200, (await _live(asked)).trace.to_json(), ((b"content-type", b"application/json"),))


async def get_journal(asked: Asked) -> JournalTold:
    """Every call of the episode, of all roles, numbered from 0 in the order in which they were made."""
    return telling.journal((await _live(asked)).trace)


async def delete_episode(asked: Asked) -> None:
    """Close an episode; nothing of it is left."""
    await asked.host.close(asked.names["id"], asked.caller)


# -- what they share


async def _live(asked: Asked) -> Live:
    live = asked.host.get(asked.names["id"], asked.caller)
    await live.woken(READY_S)
    if asked.key and live.clashes(asked.key):
        raise Conflict(USED)
    return live


async def _led(asked: Asked) -> Live:
    live = await _live(asked)
    if not live.led:
        raise Conflict("the environment's own harness plays this episode; create it with the harness 'client'")
    return live


def _led_by(env: Environment[Any], body: Create) -> str | None:
    """What the record says of a caller's harness: nothing, where it is the environment's own."""
    return None if body.harness == "server" or body.led_by == fingerprint(env.harness) else body.led_by


def _id(asked: Asked) -> str:
    """The same for the same request, even when the server died in between."""
    if not asked.name:
        return ""
    whole = f"{asked.caller.name}/{asked.name}"
    return asked.host.ids.named(codec.digest(whole.encode()))


async def _created(asked: Asked, wanted: Wanted, *, secrets: Secrets, twin: Episode[Any] | None = None) -> Detail:
    try:
        live = await asked.host.create(wanted, asked.caller, twin=twin, secrets=secrets)
    except Refused as error:  # No such split, or no such place in it: here these are names like any other.
        raise Unknown(str(error)) from error
    return await _shown(asked, live)


async def _made(asked: Asked) -> Live | None:
    """What this very request made before the server died."""
    if not asked.name:
        return None
    name = _id(asked)
    try:
        live = asked.host.get(name, asked.caller)
    except Unknown:
        return None
    if live.request != asked.digest:
        raise Conflict(USED)
    if asked.secrets.names and live.is_new:
        await asked.host.close(live.id, asked.caller)  # Its secrets are gone with the process, so it begins once more.
        return None
    return live


async def _shown(asked: Asked, live: Live) -> Detail:
    await _begun(live, READY_S)
    return telling.detail(asked, live)


async def _begun(live: Live, seconds: float) -> None:
    """Wait for the world, but not for ever, and whatever comes of it."""
    with contextlib.suppress(Starting, Void):
        await live.ready(seconds)


async def _acted(asked: Asked, live: Live, reply: Reply, *, whoever: bool = False) -> Played:
    await live.ready(READY_S)
    before = live.place(asked.key)  # Where a process did it that was killed: all that is left is to tell it.
    question = live.question
    if before is None and not whoever and question is not None and question.role != "agent":
        raise Conflict(f"the open question is for the {question.role}: answer it by a whole reply")
    if before is None:
        live.room(2 * len(await asked.request.body(asked.host.limits.body_bytes)))
    first = len(live.trace.turns) if before is None else before
    had = live.trace.failure if before is None else None
    if live.led and not isinstance(reply, Move):
        reply = _move(reply)
    try:
        answers = await live.act(reply, key=asked.key)
    except Void:
        if had is not None:
            raise
        answers = []
    first = answers[0].seq if answers else first
    answered = question if before is None else None
    return telling.played(asked, live, first=first, answers=answers, answered=answered)


def _move(reply: Reply, **more: Any) -> Move:
    return Move(**{name: getattr(reply, name) for name in Reply.__struct_fields__}, **more)


async def _changed(asked: Asked, live: Live, changes: Sequence[Change]) -> None:
    if any(isinstance(one, Fail) for one in changes):
        asked.need("trainer", "to blame a failure")
    if not live.led and any(not isinstance(one, Terminate | Fail) for one in changes):
        raise Conflict("the environment's own harness plays this episode, and alone talks to its actors")
    if changes:
        await live.ready(READY_S)
        await live.change(tuple(changes), key=asked.key)


async def _forked(episode: Episode[Any]) -> Episode[Any]:
    return await episode.fork()


async def _frozen(episode: Episode[Any]) -> bytes:
    return msgspec.structs.replace(await episode.snapshot(), secrets=shown().names).to_bytes()


async def _world(live: Live) -> bytes:
    """The world that an episode left, as bytes."""
    if live.trace.end is None:
        raise Conflict("the episode after which this one is to begin goes on")

    async def dumped(episode: Episode[Any]) -> bytes:
        return await resource.dump(episode.state)

    return await live.work("dump", dumped)


async def _split(asked: Asked, env: Environment[Any], trace: Trace) -> str:
    """The split in which a record's task is, which the record may call by another name."""
    for split in (trace.split,) if trace.split in env.splits else env.splits:
        try:
            await asked.host.task(env, split, trace.task)
        except Unknown:
            continue
        return split
    raise Unknown(f"{env.name} has no task {trace.task!r}")
