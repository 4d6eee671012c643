"""Sessions live on between requests, and are their history: forks, dumps and replays are exact."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

import msgspec
import pytest

import quintain as qn
from quintain import codec, resource
from quintain.changes import MISSING, WorldChange, changes
from quintain.errors import EpisodeError, UsageError
from quintain.resources.sandbox import Limits, Policy, Result, Sandbox
from quintain.resources.workspace import Workspace
from quintain.testing import ResourceContract
from quintain.testing.resource import Operation
from tests.resources.sandbox.house import files, need, run, worked


@pytest.fixture(autouse=True)
def machine() -> None:
    need()


@pytest.fixture(params=["overlay", "pool", "no groups"])
def box(request: pytest.FixtureRequest) -> Sandbox:
    policies = {"overlay": Policy(), "pool": Policy(pool=1), "no groups": Policy(groups="none")}
    return Sandbox(policies[request.param], limits=Limits(seconds=20))


Ask = Callable[[Workspace, str], Awaitable[Result]]


def conversation(ask: Ask, held: Workspace, *requests: str) -> list[Result]:
    async def talk() -> list[Result]:
        return [await ask(held, request) for request in requests]

    return run(talk)


class Room(qn.State):
    files: Workspace
    box: Sandbox


def test_a_request_is_a_change_of_the_world_by_its_text() -> None:
    before = Room(files=Workspace(), box=Sandbox())
    conversation(before.box.shell, before.files, "cd /tmp")
    after = before.copy()
    conversation(after.box.shell, after.files, "pwd")
    conversation(after.box.python, after.files, "1 + 1")
    assert run(lambda: changes(before, after)) == [
        WorldChange('box["shell:"][1]', MISSING, "pwd"),
        WorldChange('box["python:"]', MISSING, ["1 + 1"]),
    ]


def test_a_shell_keeps_folder_variables_and_functions(box: Sandbox) -> None:
    held = files()
    said = conversation(
        box.shell, held, "cd src; x=5", "pwd; echo $x; f() { echo f$1; }", "f 2; false", "cat <<E\nhere\nE", "if"
    )
    assert [one.out for one in said] == ["", "/workspace/src\n5\n", "f2\n", "here\n", ""]
    assert [one.status for one in said] == [0, 0, 1, 0, 2]
    assert "syntax error" in said[-1].err
    box.close()


def test_an_interpreter_keeps_its_variables_and_survives_exceptions(box: Sandbox) -> None:
    held = files()
    said = conversation(
        box.python, held, "x = 1\ndef f(): return x + 1", "print(f())", "1/0", "x =", "print(x); open('made', 'w')"
    )
    assert [one.out for one in said] == ["", "2\n", "", "", "1\n"]
    assert said[2].err == (
        'Traceback (most recent call last):\n  File "<input>", line 1, in <module>\n'
        "ZeroDivisionError: division by zero\n"
    )
    assert "SyntaxError" in said[3].err
    assert [one.status for one in said] == [0, 0, 1, 1, 0]
    assert [one.path for one in said[4].changes] == ["made"]
    assert held.exists("made")
    box.close()


def test_sessions_share_the_files_and_nothing_else() -> None:
    box, held = Sandbox(), files()

    async def talk() -> list[str]:
        await box.shell(held, "x=1; echo shell > made", session="a")
        await box.shell(held, "x=2", session="b")
        held.write("python.txt", "written in Python\n")
        return [
            (await box.shell(held, "echo $x; cat python.txt", session="a")).out,
            (await box.python(held, "print(open('made').read(), end='')", session="a")).out,
            (await box.shell(held, "echo $x; rm made", session="b")).out,
            (await box.run(held, ["ls"])).out,
            (await box.shell(held, "ls", session="a")).out,
        ]

    ls = "notes.txt\nold.txt\npython.txt\nsrc\n"
    assert run(talk) == ["1\nwritten in Python\n", "shell\n", "2\n", ls, ls]
    box.close()


def test_everything_stands_still_between_requests(box: Sandbox) -> None:
    held = files()

    async def talk() -> tuple[int, int]:
        # The request ends when the loop has had a processor for a while, however busy the machine is.
        loop = "(i=0; while true; do i=$((i + 1)); [ $i = 50000 ] && : > /tmp/spun; done) &"
        await box.shell(held, f"{loop} until [ -e /tmp/spun ]; do sleep 0.01; done")
        before = worked(box.policy.groups)
        await asyncio.sleep(0.2)
        return before, worked(box.policy.groups)

    before, after = run(talk)
    assert before == after > 0
    box.close()


@pytest.mark.parametrize(
    ("ask", "request_", "reason"),
    [
        ("shell", "exit 3", "ended"),
        ("shell", "sleep 100", "time"),
        ("shell", "yes", "output"),
        ("python", "import os; os._exit(3)", "ended"),
        ("python", "raise SystemExit(3)", "ended"),
        ("python", "while True: pass", "time"),
        ("python", "import os; os.write(3, b'9999')", ""),
        ("python", "import os; os.close(3)", "ended"),
        ("python", "import os; os.write(3, b'nonsense' * 10)", "ended"),
    ],
)
def test_a_session_that_ended_begins_anew(ask: str, request_: str, reason: str) -> None:
    box, held = Sandbox(limits=Limits(seconds=0.7, output_bytes=1000)), files()
    put, get = {"shell": ("x=1", "echo [$x]"), "python": ("x = 1", "print('x' in globals())")}[ask]
    _, ended, anew = conversation(cast(Ask, getattr(box, ask)), held, put, request_, get)
    if not reason:
        return  # It forged an answer, which harms only itself.
    assert ended.reason == reason
    if request_ in {"exit 3", "import os; os._exit(3)", "raise SystemExit(3)"}:
        assert ended.status == 3
    assert (anew.out, anew.reason) == ({"shell": "[]\n", "python": "False\n"}[ask], "")
    assert box.digest() != Sandbox(limits=box.limits).digest()
    box.close()


def test_a_fork_has_the_same_past_and_a_future_of_its_own(box: Sandbox) -> None:
    held = files()
    conversation(box.python, held, "x = [1]", "x.append(2); open('made', 'w').write('1')")
    held.write("made", "changed in Python")
    conversation(box.python, held, "x.append(open('made').read())")
    twin, other = box.fork(), held.fork()
    assert twin.digest() == box.digest()
    assert conversation(twin.python, other, "x.append('twin'); print(x)")[0].out == (
        "[1, 2, 'changed in Python', 'twin']\n"
    )
    assert conversation(box.python, held, "print(x)")[0].out == "[1, 2, 'changed in Python']\n"
    assert twin.digest() != box.digest()
    again = Sandbox.load(twin.dump())
    assert again.digest() == twin.digest()
    assert conversation(again.python, other, "print(len(x))")[0].out == "4\n"
    for one in (box, twin, again):
        one.close()


def test_files_of_a_history_are_those_of_then() -> None:
    box, held = Sandbox(), files()
    conversation(box.shell, held, "x=$(cat notes.txt)", "rm notes.txt; y=$(ls)")
    twin, other = Sandbox.load(box.dump()), held.fork()
    (said,) = conversation(twin.shell, other, "echo $x; echo $y; ls")
    assert said.out == "one\nold.txt src\nold.txt\nsrc\n"
    assert said.changes == ()
    box.close()
    twin.close()


def test_a_history_that_goes_otherwise_is_no_history() -> None:
    box, held = Sandbox(), files()
    conversation(box.python, held, "import time; print(time.time())")
    with pytest.raises(EpisodeError, match="another answer") as info:
        conversation(box.fork().python, held.fork(), "pass")
    assert (info.value.component, info.value.kind) == ("S", "quintain:replay_diverged")
    box.close()


def test_a_request_that_is_cancelled_leaves_the_history_as_it_was() -> None:
    box, held = Sandbox(), files()

    async def talk() -> str:
        await box.shell(held, "x=1")
        before = box.digest()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(box.shell(held, "x=2; echo y > made; sleep 100"), 0.4)
        assert box.digest() == before
        assert not held.exists("made")
        return (await box.shell(held, "echo $x; ls made")).out

    assert run(talk) == "1\n"
    box.close()


def test_a_request_is_text_without_nul() -> None:
    with pytest.raises(UsageError):
        run(lambda: Sandbox().shell(files(), "a\0b"))


def test_a_history_that_is_torn_is_refused() -> None:
    with pytest.raises(msgspec.DecodeError):
        Sandbox.load(b"\x90")
    with pytest.raises(msgspec.DecodeError):
        Sandbox.load(Sandbox().dump().replace(b"sandbox 1", b"sandbox 9"))


class Pair:
    """A sandbox with its files, as one resource."""

    def __init__(self, box: Sandbox | None = None, held: Workspace | None = None) -> None:
        self.box, self.held = box or Sandbox(limits=Limits(seconds=30)), held or files()

    def fork(self) -> Pair:
        return Pair(self.box.fork(), self.held.fork())

    def dump(self) -> bytes:
        return codec.dumps((self.box.dump(), self.held.dump()))

    def digest(self) -> str:
        return self.box.digest() + self.held.digest()

    @classmethod
    def load(cls, data: bytes) -> Pair:
        box, held = codec.loads(data, tuple[bytes, bytes])
        return cls(Sandbox.load(box), Workspace.load(held))


def shell(command: str) -> Operation:
    return lambda pair: pair.box.shell(pair.held, command)


def python(code: str) -> Operation:
    return lambda pair: pair.box.python(pair.held, code)


class TestSandboxKeepsTheLawsOfAResource(ResourceContract):
    examples = 2
    lengths = range(3)

    def make(self) -> Pair:
        return Pair()

    def operations(self) -> Sequence[Operation]:
        return [
            shell("n=$((n+1)); echo $n | tee -a count"),
            python("n = globals().get('n', 0) + 1; print(n); open('count', 'a').write('p')"),
            lambda pair: pair.held.write("count", "0\n"),
            lambda pair: pair.box.run(pair.held, shell="cat count; mkdir -p more; date -r . +%s"),
        ]


class Desk(qn.State):
    files: Workspace
    box: Sandbox

    @qn.tool
    async def bash(self, command: str) -> str:
        """Run a command.

        Args:
            command: For bash.
        """
        return (await self.box.shell(self.files, command)).out


def test_a_world_holds_it() -> None:
    async def play() -> list[Any]:
        desk = Desk(files=files(), box=Sandbox())
        desk.clock.advance(1_000_000)
        await desk.bash("x=7; echo > made")
        assert desk.files.stat("made").mtime == 1_000_000
        twin = await resource.fork(desk)
        assert await resource.digest(twin) == await resource.digest(desk)
        twin.clock.advance(500)
        stored = resource.load(Desk, await resource.dump(twin))
        await resource.ready(stored)
        said = [await one.bash("echo $x; stat -c %Y made; echo > later") for one in (desk, twin, stored)]
        assert stored.files.stat("later").mtime == 1_000_500
        for one in (desk, twin, stored):
            one.box.close()
        return said

    assert run(play) == ["7\n1000000\n"] * 3
