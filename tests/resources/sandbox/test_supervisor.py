"""The supervisor leaves nothing behind, whatever happens to it, to its owner, or to who waits."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from quintain.errors import EpisodeError
from quintain.resources.sandbox import Limits, Policy, Sandbox, SandboxUnavailable, link
from quintain.resources.sandbox.running import ProgramRequest, Ready
from tests.resources.sandbox.house import children, files, held, need, run, settled

GUARD = 60.0
"""Seconds after which what should have gone is taken to stay."""


@pytest.fixture(autouse=True)
def machine() -> None:
    need()


def gone(pids: Iterable[int]) -> bool:
    """True if all of these processes end within the guard."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            fd = os.pidfd_open(pid)
            try:
                if not select.select([fd], [], [], GUARD)[0]:
                    return False
            finally:
                os.close(fd)
    return True


@pytest.mark.slow
@pytest.mark.parametrize("groups", ["auto", "none"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_processes_end_with_their_owner(groups: str, number: int) -> None:
    victim, there = begin_victim(groups)
    with victim:
        victim.send_signal(number)
    assert gone([there["supervisor"], *there["below"]])
    assert [folder for folder in there["folders"] if Path(folder).exists()] == []


def begin_victim(groups: str) -> tuple[subprocess.Popen[str], dict[str, Any]]:
    root = Path(__file__).parents[3]
    command = [sys.executable, "-m", "tests.resources.sandbox.victim", groups]
    victim = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root)
    assert victim.stdout is not None
    there = json.loads(victim.stdout.readline())
    assert len(there["below"]) > 10
    return victim, there


def test_leftovers_of_a_dead_supervisor_and_owner_are_swept_by_the_next() -> None:
    victim, there = begin_victim("auto")
    with victim:
        os.kill(there["supervisor"], signal.SIGSTOP)
        victim.kill()
        victim.wait()
        os.kill(there["supervisor"], signal.SIGKILL)
    assert gone([there["supervisor"], *there["below"]])
    link.Supervisor().stop()
    assert [folder for folder in there["folders"] if Path(folder).exists()] == []


def test_an_ordinary_user_has_sandboxes_too() -> None:
    if os.getuid() != 0:
        pytest.skip("these tests run as an ordinary user already")
    root, python, user = Path(__file__).parents[3], "/usr/bin/python3", 54321
    with tempfile.TemporaryDirectory() as name:
        os.chown(name, user, user)
        packages = Path(msgspec.__file__).parents[1]
        env = {
            "PYTHONPATH": f"{root / 'src'}:{root}:{packages}",
            "QUINTAIN_CACHE": name,
            "PYTHONDONTWRITEBYTECODE": "1",
        }

        def ask(*arguments: str) -> subprocess.CompletedProcess[str]:
            command = [python, *arguments]
            return subprocess.run(
                command,
                env=env,
                cwd="/",
                user=user,
                group=user,
                extra_groups=[],
                capture_output=True,
                text=True,
                check=False,
            )

        if (tried := ask("-c", "import quintain.resources.workspace")).returncode:
            pytest.skip(f"no interpreter that every user can read has our packages: {tried.stderr.strip()[-200:]}")
        done = ask("-m", "tests.resources.sandbox.ordinary")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    if "unavailable" in said:
        pytest.skip(f"ordinary users have none here: {said['unavailable']}")
    shown = "1000 ['kept', 'old']\n" + "FileNotFoundError\n" * 3 + "PermissionError\n"
    assert said == {
        "uid": user,
        "is_nested": True,
        "modes": [[shown, "", ["made", "old"], "1\nkept\n", True]] * 3,
    }


@pytest.mark.slow
def test_a_supervisor_that_is_killed_breaks_the_world_and_takes_everything_along() -> None:
    box, workspace = Sandbox(limits=Limits(seconds=300)), files()

    async def talk() -> tuple[list[int], list[str]]:
        await box.shell(workspace, "x=1; sleep 300 &")
        supervisor = link.supervisor()
        below = sorted(children(supervisor.process.pid))
        running = asyncio.ensure_future(box.run(workspace, ["sleep", "300"]))
        while len(children(supervisor.process.pid)) < len(below) + 2:  # noqa: ASYNC110  # what the kernel knows
            await asyncio.sleep(0.01)
        below = sorted(children(supervisor.process.pid))
        supervisor.process.kill()
        with pytest.raises(EpisodeError, match="supervisor") as info:
            await running
        assert (info.value.component, info.value.kind) == ("S", "session_lost")
        # Another supervisor lives the history again.
        assert (await box.shell(workspace, "echo $x")).out == "1\n"
        assert link.supervisor() is not supervisor
        return below, [str(supervisor.home), *supervisor.groups]

    below, folders = run(talk)
    assert gone(below)
    assert [folder for folder in folders if Path(folder).exists()] == []
    box.close()


def test_a_supervisor_that_ends_is_gone_before_its_process_is() -> None:
    async def talk() -> None:
        box = Sandbox()
        await box.run(files(), ["true"])
        supervisor = link.supervisor()
        line = supervisor.open()
        await line.opened()
        supervisor.process.send_signal(signal.SIGSTOP)
        line.tell("freeze")  # What it never read makes its end another one than that of who has read all.
        supervisor.process.kill()
        with pytest.raises(EpisodeError, match="supervisor"):
            await line.heard()
        assert not supervisor.is_alive
        line.close()
        assert (await box.run(files(), ["true"])).status == 0

    run(talk)


def test_callers_may_be_cancelled_at_any_time() -> None:
    workspace = files()

    async def cut(seconds: float) -> None:
        box = Sandbox(limits=Limits(seconds=300))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(box.run(workspace, shell="(sleep 300 &); touch made; sleep 300"), seconds)

    async def talk() -> None:
        await Sandbox().run(workspace, ["true"])
        before = await settled()
        for milliseconds in (0, 1, 2, 4, 8, 16, 32, 64, 128):
            await cut(milliseconds / 1000)
        await Sandbox().run(workspace, ["true"])
        assert await settled() == before

    run(talk)
    assert not workspace.exists("made")


def test_leaving_a_stream_ends_the_program() -> None:
    async def talk() -> None:
        box, workspace = Sandbox(), files()
        await box.run(workspace, ["true"])
        before = await settled()
        stream = box.stream(workspace, shell="touch made; echo begun; sleep 300")
        await anext(stream)
        await stream.aclose()
        assert not workspace.exists("made")
        await box.run(workspace, ["true"])
        assert await settled() == before

    run(talk)


@pytest.mark.parametrize("count", [10, pytest.param(100, marks=pytest.mark.slow)])
def test_many_at_once_leave_nothing(count: int) -> None:
    async def one(number: int) -> str:
        workspace = files()
        program = f"(setsid sleep 300 &); mkfifo pipe; echo {number} > made; cat made; sleep 300 & exit 0"
        done = await Sandbox(limits=Limits(seconds=120)).run(workspace, shell=program)
        assert workspace.text("made") == done.out
        return done.out

    async def talk() -> list[str]:
        await one(0)
        before = await settled()
        said = await asyncio.gather(*(one(number) for number in range(count)))
        await one(0)
        assert await settled() == before
        return said

    assert run(talk) == [f"{number}\n" for number in range(count)]


def test_a_supervisor_serves_one_loop_after_another() -> None:
    box, workspace = Sandbox(Policy(pool=1)), files()
    run(lambda: box.shell(workspace, "x=1"))
    pid = link.supervisor().process.pid
    assert run(lambda: box.shell(workspace, "echo $x")).out == "1\n"
    assert run(lambda: box.run(workspace, ["echo", "2"])).out == "2\n"
    assert link.supervisor().process.pid == pid
    box.close()


def test_a_sandbox_that_nobody_holds_ends_its_sessions() -> None:
    async def talk() -> None:
        workspace = files()
        await Sandbox().run(workspace, ["true"])
        before = await settled()
        box = Sandbox()
        await box.shell(workspace, "sleep 300 &")
        assert held()["processes"] > before["processes"]
        del box
        assert await settled() == before

    run(talk)


FORKS = """
import os
from quintain.resources.sandbox import link
first = link.supervisor()
pid = os.fork()
if pid == 0:
    second = link.supervisor()
    good = second is not first and second.is_alive and not first.is_alive
    second.stop()
    os._exit(0 if good else 1)
assert os.waitpid(pid, 0)[1] == 0
assert link.supervisor() is first and first.is_alive
"""


def test_a_forked_process_has_a_supervisor_of_its_own() -> None:
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_errors_of_the_supervisor_carry_its_message() -> None:
    async def talk() -> None:
        line = link.supervisor().open()
        try:
            await line.opened()
            with pytest.raises(EpisodeError, match="KeyError"):
                await line.ask("mount")
            with pytest.raises(EpisodeError, match="no_such_thing"):
                await line.ask("no_such_thing")
        finally:
            line.close()
        await link.settled()

    run(talk)


def test_a_sandbox_that_waits_and_cannot_is_an_error_that_says_so() -> None:
    async def talk() -> None:
        rules = Policy(python="/bin/false")
        ready = Ready(link.supervisor(), rules)
        await asyncio.wait_for(ready.line.ended(), GUARD)
        with pytest.raises(EpisodeError, match="/bin/false"):
            ready.send(ProgramRequest(argv=("true",)), [], rules=rules, limits=Limits())
        ready.close()

    run(talk)


def test_a_machine_without_bubblewrap_runs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    monkeypatch.setattr(link, "_running", {})
    box = Sandbox()
    with pytest.raises(SandboxUnavailable, match="apt-get install bubblewrap"):
        run(lambda: box.run(files(), ["true"]))
    assert set(run(box.guarantees).values()) == {False}


def test_a_bubblewrap_that_cannot_isolate_runs_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: no permissions to create new namespace' >&2\nexit 1\n")
    fake.chmod(0o755)
    tmp_path.chmod(0o755)
    for folder in tmp_path.parents:
        if folder.stat().st_uid == os.getuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o111)
    monkeypatch.setattr("shutil.which", lambda *_, **__: str(fake))
    monkeypatch.setattr(link, "_running", {})
    try:
        with pytest.raises(SandboxUnavailable, match="no permissions to create new namespace"):
            run(lambda: Sandbox().run(files(), ["true"]))
    finally:
        link.supervisor().stop()


def test_a_tree_of_processes_ends_before_its_files_are_read() -> None:
    started = time.monotonic()
    workspace = files()
    program = "for i in 1 2 3 4 5; do (setsid sh -c 'while true; do echo x >> grows; done' &) ; done; sleep 0.1"
    done = run(lambda: Sandbox(limits=Limits(seconds=20)).run(workspace, shell=program))
    (change,) = done.changes
    assert change.after is not None
    assert change.after.size == len(workspace.read("grows"))
    assert time.monotonic() - started < GUARD
