"""Laws over random histories: a fork goes on like its origin, and a replay elsewhere gives the same bytes."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from quintain import codec, resource
from quintain.resources.web import HttpRequest, Noise, request
from tests.products.conftest import basic, fresh

HOST = "http://acme.zendesk.localhost/api/v2/"
TICKET = st.fixed_dictionaries(
    {},
    optional={
        "status": st.sampled_from(["new", "open", "pending", "hold", "solved", "closed"]),
        "priority": st.sampled_from(["low", "high", "urgent"]),
        "tags": st.lists(st.sampled_from(["a", "b"]), max_size=2),
        "comment": st.fixed_dictionaries({"body": st.sampled_from(["hello", "printer"]), "public": st.booleans()}),
        "requester": st.fixed_dictionaries({"email": st.sampled_from(["x@mail.example", "customer1@mail.example"])}),
        "type": st.sampled_from(["problem", "incident"]),
        "assignee_email": st.just("agent1@acme.example"),
    },
)
NUMBER = st.integers(1, 13)
WHO = st.sampled_from(["admin@acme.example", "agent1@acme.example", "customer1@mail.example"])
STEPS = st.one_of(
    st.tuples(st.just("POST"), st.just("tickets"), st.builds(lambda one: {"ticket": one}, TICKET)),
    st.tuples(st.just("PUT"), st.builds("tickets/{}".format, NUMBER), st.builds(lambda one: {"ticket": one}, TICKET)),
    st.tuples(st.just("DELETE"), st.builds("tickets/{}".format, NUMBER), st.none()),
    st.tuples(st.just("POST"), st.builds("tickets/{}/merge".format, NUMBER), st.builds(lambda n: {"ids": [n]}, NUMBER)),
    st.tuples(st.just("POST"), st.just("tickets/create_many"), st.builds(lambda one: {"tickets": [one] * 3}, TICKET)),
    st.tuples(st.just("PUT"), st.builds("requests/{}".format, NUMBER),
        st.just({"request": {"comment": {"body": "?"}}})),
    st.tuples(
        st.just("GET"),
        st.sampled_from(["tickets", "search?query=printer", "views", "users/me", "tickets/1/audits", "job_statuses"]),
        st.none(),
    ),
)  # fmt: skip
HISTORY = st.lists(st.tuples(WHO, STEPS, st.sampled_from([0.0, 30.0, 7200.0, 90_000.0])), min_size=1, max_size=14)


class Asked(msgspec.Struct):
    """One request of a history, and the time that passes before it."""

    pause: float
    request: HttpRequest


def requests(history: Any) -> list[Asked]:
    return [
        Asked(pause, request(method, HOST + path, body, headers=basic(who)))
        for who, (method, path, body), pause in history
    ]  # fmt: skip


def play(world: Any, history: list[Asked], *, planned: bool = False) -> list[bytes]:
    """Returns the bytes of all answers."""
    found: list[bytes] = []
    for one in history:
        world.clock.advance(one.pause)
        answer = world.respond(one.request)
        assert answer.status < 500 or planned
        found.append(codec.dumps((answer.status, answer.body, answer.headers)))
    return found


def digest(world: Any) -> str:
    return asyncio.run(resource.digest(world))


@settings(max_examples=40, deadline=None)
@given(HISTORY, st.integers(0, 14))
def test_fork_goes_on_like_its_origin(history: Any, cut: int) -> None:
    asked = requests(history)
    world = fresh()
    play(world, asked[:cut])
    twin = world.copy()
    loaded = asyncio.run(resource.loaded(type(world), asyncio.run(resource.dump(world))))
    other = world.copy()
    play(other, requests([("admin@acme.example", ("PUT", "tickets/1", {"ticket": {"tags": ["other"]}}), 1.0)]))
    assert play(world, asked[cut:]) == play(twin, asked[cut:]) == play(loaded, asked[cut:])
    assert digest(world) == digest(twin) == digest(loaded)


NOISY = Noise("task 7", rate_limited=0.3, unavailable=0.2, conflict=0.5, duplicate=0.5, stale=0.5, lag_s=60.0)


@settings(max_examples=40, deadline=None)
@given(HISTORY, st.integers(0, 14))
def test_noise_is_the_same_for_a_replay_and_a_fork(history: Any, cut: int) -> None:
    asked, found = requests(history), []
    for _ in range(2):
        world = fresh()
        world.noise = NOISY
        before = play(world, asked[:cut], planned=True)
        twin = world.copy()
        after = play(world, asked[cut:], planned=True)
        assert after == play(twin, asked[cut:], planned=True)
        assert digest(world) == digest(twin)
        found.append((before, after, digest(world)))
    assert found[0] == found[1]


def test_replay_in_another_process_gives_the_same_bytes(tmp_path: Path) -> None:
    histories: list[list[Asked]] = []

    @settings(max_examples=25, deadline=None, database=None)
    @given(HISTORY)
    def collect(history: Any) -> None:
        histories.append(requests(history))

    collect()
    file = tmp_path / "histories"
    file.write_bytes(msgspec.msgpack.encode(histories))
    mine = []
    for history in histories:
        world = fresh()
        mine.append(codec.digest(codec.dumps((play(world, history), digest(world)))))
    command = [sys.executable, "-m", "tests.products.test_histories", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == mine


@settings(max_examples=15, deadline=None)
@given(HISTORY, st.integers(1, 40))
def test_three_days_at_once_equal_three_days_in_steps(history: Any, steps: int) -> None:
    world = fresh()
    play(world, requests(history))
    twin = world.copy()
    world.clock.advance(3 * 86_400.0)
    for _ in range(steps):
        twin.clock.advance(3 * 86_400.0 / steps)
    twin.clock.advance(max(0.0, world.clock.now - twin.clock.now))
    assert world.db.diff(twin.db) == []


if __name__ == "__main__":
    for one in msgspec.msgpack.decode(Path(sys.argv[1]).read_bytes(), type=list[list[Asked]]):
        base = fresh()
        sys.stdout.write(codec.digest(codec.dumps((play(base, one), digest(base)))) + "\n")
