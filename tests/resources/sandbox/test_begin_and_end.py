"""Prepared sandboxes change no result: a program begins when its files are there, and ends as any program does."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from quintain.errors import EpisodeError
from quintain.resources.sandbox import Limits, Policy, Result, Sandbox, link, running
from quintain.resources.workspace import Workspace, staging
from tests.resources.sandbox.house import files, need, run, settled

KEPT_READY = Policy(pool=1)
_ADDRESS = re.compile("0x[0-9a-f]+")

PROGRAMS = {
    "handlers": "import atexit; atexit.register(print, 'last'); atexit.register(print, 'first'); print('now')",
    "a handler that fails": "import atexit; atexit.register(lambda: 1 / 0)",
    "threads": "import threading, time\n"
    "def late():\n    time.sleep(0.05)\n    print('late')\n"
    "threading.Thread(target=late).start()\nprint('now')",
    "a file that is open": "file = open('left.txt', 'w')\nfile.write('all of it')",
    "a file in a circle": "knot = [open('left.txt', 'w')]\nknot.append(knot)\nknot[0].write('all of it')",
    "finalizers": "class Loud:\n    def __del__(self):\n        print('gone', flush=True)\n"
    "one = Loud()\nknot = [Loud()]\nknot.append(knot)\nLoud.one = Loud()",
    "output without an end": "import sys; sys.stdout.write('no newline')",
    "output that is not read": "import os; os.close(1); print('lost')",
    "a status": "raise SystemExit(7)",
    "words for a status": "import sys; sys.exit('words')",
    "an exception": "def inner():\n    1 / 0\ninner()",
    "a chain of exceptions": "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise KeyError(1) from error",
    "no program": "x = (",
    "a signal": "import os; os.kill(os.getpid(), 15)",
    "names": "print(sorted(globals()), __name__, __doc__, __builtins__, __annotations__)",
    "the module": "import sys, __main__; print(vars(__main__) is globals(), sys.modules['__main__'] is __main__)",
    "pickles": "import pickle\nclass Own:\n    x = 1\nprint(pickle.loads(pickle.dumps(Own())).x)",
    "who refers": "import gc; held = []; print(any(one is globals() for one in gc.get_referrers(held)))",
    "circles are found": "import gc, weakref\nclass Knot: pass\nknot = Knot()\nknot.me = knot\n"
    "seen = weakref.ref(knot)\ndel knot\ngc.collect()\nprint(seen())",
    "a child": "import os, sys\nif os.fork() == 0:\n    print('child')\n    sys.exit(3)\nprint(os.wait()[1] >> 8)",
    "arguments": "import sys; print(sys.argv, sys.flags, sys.path)",
    "descriptors": "import os; print(sorted(os.listdir('/proc/self/fd'))[:4], len(os.listdir('/proc/self/fd')))",
    "where": "import os; print(os.getcwd(), sorted(os.listdir()))",
}


@pytest.fixture(autouse=True)
def _possible() -> None:
    need()


def _both(program: str) -> list[tuple[Result, bytes]]:
    """Without and with a sandbox that waited."""

    async def whole() -> list[tuple[Result, bytes]]:
        found: list[tuple[Result, bytes]] = []
        for policy in (Policy(), KEPT_READY):
            box, workspace = Sandbox(policy), files()
            await box.ready()
            await settled()
            found.append((await box.run(workspace, python=program), workspace.dump()))
        return found

    return run(whole)


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_a_program_in_a_sandbox_that_waited_ends_as_any_other(program: str) -> None:
    cold, kept = ((_ADDRESS.sub("0x", str(done)), workspace) for done, workspace in _both(program))
    assert kept == cold


def test_programs_of_this_file_show_their_cases() -> None:
    said = {name: _both(PROGRAMS[name])[1][0] for name in ("handlers", "threads", "finalizers", "a file in a circle")}
    assert said["handlers"].out == "now\nfirst\nlast\n"
    assert said["threads"].out == "now\nlate\n"
    assert said["finalizers"].out == "gone\n" * 3
    (change,) = said["a file in a circle"].changes
    assert (change.path, change.after and change.after.size) == ("left.txt", len("all of it"))


@pytest.mark.parametrize("policy", [Policy(), Policy(overlay=False), KEPT_READY], ids=["layers", "copy", "pool"])
def test_a_program_begins_when_its_files_are_there(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = staging.stage

    def slowly(*words: Any, **named: Any) -> Any:
        time.sleep(0.1)  # Long enough for bubblewrap, and for an interpreter, to be done with all but the program.
        return inner(*words, **named)

    monkeypatch.setattr(running, "stage", slowly)
    workspace = files()
    done = run(lambda: Sandbox(policy).run(workspace, shell="pwd; cat notes.txt; echo two > notes.txt"))
    assert (done.out, done.err) == ("/workspace\none\n", "")
    assert workspace.text("notes.txt") == "two\n"


def _places(held: dict[str, Any]) -> list[int]:
    """Returns the counts that do not depend on a sandbox of the pool that is still starting."""
    return [held[name] for name in ("folders", "groups", "mounts")]


@pytest.mark.parametrize("policy", [Policy(), KEPT_READY], ids=["cold", "pool"])
def test_a_program_whose_files_cannot_be_laid_out_never_begins(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    async def talk() -> None:
        box, workspace = Sandbox(policy), files()
        await box.run(workspace, ["true"])
        before = _places(await settled())
        with monkeypatch.context() as patch, pytest.raises(ZeroDivisionError):
            patch.setattr(running, "stage", lambda *_, **__: 1 / 0)
            await box.run(workspace, shell="touch begun")
        await settled()
        await box.run(workspace, ["true"])
        assert _places(await settled()) == before
        assert not workspace.exists("begun")

    run(talk)


@pytest.mark.parametrize("policy", [Policy(), KEPT_READY], ids=["cold", "pool"])
def test_layers_that_cannot_be_mounted_are_copied_and_the_program_begins_once(
    policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = staging.stage

    def wrongly(*words: Any, **named: Any) -> Any:
        staged = inner(*words, **named)
        if named["overlay"]:
            staged.lower = Path("/no/such/base")
        return staged

    async def talk() -> None:
        box, workspace = Sandbox(policy), files()
        await box.ready()
        monkeypatch.setattr(running, "stage", wrongly)
        done = await box.run(workspace, shell="cat notes.txt; echo again >> log")
        assert (done.out, workspace.text("log")) == ("one\n", "again\n")
        assert not link.supervisor().can_overlay

    try:
        run(talk)
    finally:
        link.supervisor().can_overlay = True


def test_a_start_that_fails_is_no_trouble_of_the_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    async def talk() -> None:
        supervisor, box, workspace = link.supervisor(), Sandbox(), files()
        await box.run(workspace, ["true"])
        before = await settled()
        with monkeypatch.context() as patch, pytest.raises(EpisodeError, match="is_held"):
            patch.setattr(
                link.Line, "tell", lambda line, do, fds=(), **words: tell(line, do, fds, bwrap=words["bwrap"])
            )
            await box.run(workspace, ["true"])
        assert supervisor.can_overlay
        assert (await box.run(workspace, ["true"])).status == 0
        assert await settled() == before

    tell = link.Line.tell
    run(talk)


@pytest.mark.parametrize("policy", [Policy(), Policy(overlay=False), KEPT_READY], ids=["layers", "copy", "pool"])
def test_files_of_a_program_are_no_devices_and_give_no_rights(policy: Policy) -> None:
    done = run(lambda: Sandbox(policy).run(files(), shell="cat /proc/self/mountinfo"))
    flags = [line.split()[5].split(",") for line in done.out.splitlines() if line.split()[4] == "/workspace"]
    assert flags
    assert all({"nosuid", "nodev"} <= set(each) for each in flags)


@pytest.mark.parametrize("policy", [Policy(), KEPT_READY], ids=["cold", "pool"])
def test_less_memory_than_a_program_begins_with_is_that_limit(policy: Policy) -> None:
    if "memory" not in {name for name, holds in run(Sandbox(policy).guarantees).items() if holds}:
        pytest.skip("no control group counts memory here")
    box = Sandbox(policy, limits=Limits(memory_bytes=65536))
    done = run(lambda: box.run(files(), ["true"]))
    assert (done.reason, done.signal) == ("memory", 9)


def test_etc_is_what_every_sandbox_sees_and_nobody_writes() -> None:
    program = "cd /etc; cat hosts; for name in passwd hosts ld.so.cache; do rm -f $name; echo > $name; done"
    done = run(lambda: Sandbox().run(Workspace(), shell=f"{program}; head -c 4 /etc/passwd"))
    assert done.out.startswith("127.0.0.1 localhost sandbox\n")
    assert done.out.endswith("root")
    assert done.err.count("Read-only file system") == 6
    assert msgspec.json.encode(done.changes) == b"[]"


@pytest.mark.parametrize("policy", [Policy(), KEPT_READY], ids=["cold", "pool"])
def test_the_next_sandbox_is_made_before_it_is_asked_for(policy: Policy) -> None:
    async def talk() -> None:
        supervisor, box = link.supervisor(), Sandbox(policy)
        for _ in range(2):
            await box.run(files(), ["true"])
            await settled()
        before = len([*supervisor.root.glob("[0-9]*")])
        line = supervisor.open()
        await line.opened()
        assert len([*supervisor.root.glob("[0-9]*")]) == before
        line.close()

    run(talk)
