"""Containers keep the promises of a sandbox, but for those that are listed here; and they leave nothing behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from quintain import resource
from quintain.errors import EpisodeError, UsageError
from quintain.resources.sandbox import Limits, Policy, Result, Sandbox, SandboxUnavailable
from quintain.resources.sandbox import engine as engines
from quintain.resources.sandbox.engine import Engine
from quintain.resources.sandbox.fifo_io import NUMBER
from tests.resources.sandbox import payloads
from tests.resources.sandbox.contract import MB, SandboxContract
from tests.resources.sandbox.house import files, need, run
from tests.resources.sandbox.images import podman, unpacked

GUARD = 60.0


@pytest.fixture
def policy(image: str) -> Policy:
    found = Policy(backend="podman", image=image)
    need(found)
    return found


def engine() -> Engine:
    return run(lambda: engines.engine("podman"))


def containers(label: str) -> list[str]:
    """Returns the containers that podman lists, in any state."""
    done = podman("ps", "-a", "--filter", f"label={label}", "--format", "{{.Names}}")
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(GUARD):
        while not holds():  # noqa: ASYNC110  # what another process does
            await asyncio.sleep(0.02)


@pytest.mark.slow
class TestPodman(SandboxContract):
    """Contract on podman; each deviation is overridden, and its test says what holds instead."""

    @pytest.fixture(autouse=True)
    def machine(self, policy: Policy) -> None:
        self.policy = policy

    def test_the_same_program_says_the_same(self) -> None:
        """Programs have another number."""
        first, second = self.python(payloads.SURROUNDINGS), self.python(payloads.SURROUNDINGS)
        assert first == second
        said = [str(NUMBER), "1000 1000", "sandbox", "('UTC', 'UTC')", "C.UTF-8", "/workspace"]
        assert first.out.splitlines()[:6] == said

    def test_monotonic_clock_begins_with_the_program(self) -> None:
        """Containers do not have a time namespace."""
        with pytest.raises(SandboxUnavailable, match="monotonic"):
            run(Sandbox(msgspec.structs.replace(self.policy, require=("monotonic",))).ready)

    def test_wall_clock_is_the_worlds_when_required(self) -> None:
        """An image need not have libfaketime."""
        with pytest.raises(SandboxUnavailable, match="clock"):
            run(Sandbox(msgspec.structs.replace(self.policy, require=("clock",))).ready)

    def test_program_sees_nothing_of_this_process(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Programs have another number."""
        monkeypatch.setenv("QUINTAIN_TEST_SECRET", "hunter2")
        environments, pids, fds = self.python(payloads.PROCESSES).out.splitlines()
        assert "hunter2" not in environments
        assert "QUINTAIN" not in environments
        assert set(pids.split()) <= {"1", str(NUMBER)}
        assert fds == "0 1 2"

    def test_program_sees_nothing_of_the_machine(self) -> None:
        """A container has a /run of its own, and a /sys that engines have cut down."""
        here = Path(__file__)
        done = self.python(payloads.READS.replace("SECRET", str(here)).replace("HERE", str(here.parent)))
        assert done.out == "/run /sys\n"

    def test_program_reaches_no_network(self) -> None:
        """The engine's seccomp profile has other errors, and netlink reaches the empty namespace."""
        done = self.python(f"PORT, NAME = 1, 'name'\n{payloads.CONNECTS}")
        assert done.out.splitlines()[:2] == ["tcp refused", "far unreachable"]
        assert done.out.splitlines()[3:] == ["packet 1", "netlink reached"]
        assert self.play(shell="cat /proc/net/dev").out.count(":") == 1  # lo

    def test_dangerous_system_calls_are_refused(self) -> None:
        """Engines' seccomp profiles differ; some allow these."""
        done = self.python(payloads.SYSCALLS)
        refusals = ("EPERM", "ENOSYS", "EINVAL", "ENOTTY")
        allowed = {line.removesuffix(" allowed") for line in done.out.splitlines() if not line.endswith(refusals)}
        assert allowed <= {"unshare user", "unshare mount", "unshare net", "ptrace traceme", "process_vm_readv"}
        assert len(done.out.splitlines()) > 15

    @pytest.mark.parametrize("what", ["anonymous", "tmp", "shm"])
    def test_memory_limit_ends_the_program(self, what: str) -> None:
        """The workspace is on disk."""
        super().test_memory_limit_ends_the_program(what)

    def test_disk_limit_refuses_more(self) -> None:
        """Each file is bounded, and each of the three folders; not the three together."""
        done = self.python(payloads.DISK, disk_bytes=4 * MB)
        assert done.out == "File too large\n" * 3
        assert sum(one.after.size for one in done.changes if one.after) <= 4 * MB
        done = self.python("for n in range(5): open(str(n), 'wb').write(bytes(2**20))", disk_bytes=4 * MB)
        assert (done.reason, done.changes) == ("disk", ())

    def test_a_path_that_is_too_long(self) -> None:
        """The path is too long for any folder."""
        done = self.python("import os\nfor n in range(3000): os.mkdir('ab'); os.chdir('ab')\nprint('made')")
        assert (done.reason, done.changes) == ("disk", ())

    def test_file_limit_refuses_more(self) -> None:
        """Too many are taken note of when they are there, and then the workspace stays as it was."""
        done = self.python(payloads.INODES, files=100)
        assert (done.reason, done.changes) == ("disk", ())
        assert "100 files" in done.err

    def test_network_of_the_policy_is_reachable_and_no_other(self) -> None:
        """Containers do not have a network at all."""
        with pytest.raises(UsageError, match="network"):
            Sandbox(msgspec.structs.replace(self.policy, network=("127.0.0.1:80",)))


# -- the short of it, for the fast tests


def test_a_program_and_its_stream(policy: Policy) -> None:
    box, held = Sandbox(policy), files()

    async def talk() -> tuple[Result, list[object]]:
        done = await box.run(held, shell="cat; echo $A; echo wrong >&2; echo two > notes.txt; exit 7", stdin=b"said ")
        return done, [one async for one in box.stream(held, shell="cat notes.txt; rm old.txt")]

    done, (*chunks, end) = run(talk)
    assert (done.status, done.out, done.err, [one.path for one in done.changes]) == (
        7,
        "said \n",
        "wrong\n",
        ["notes.txt"],
    )
    assert b"".join(one.out for one in chunks) == b"two\n"  # type: ignore[attr-defined]  # chunks
    assert isinstance(end, Result)
    assert [one.path for one in end.changes] == ["old.txt"]


def test_guarantees_of_containers(policy: Policy) -> None:
    holds = run(Sandbox(policy).guarantees)
    assert {name for name, is_held in holds.items() if not is_held} >= {"disk", "monotonic", "clock"}
    assert {name for name, is_held in holds.items() if is_held} >= {"isolation", "time", "output"}
    with pytest.raises(SandboxUnavailable, match="disk"):
        run(lambda: Sandbox(msgspec.structs.replace(policy, require=("disk",))).run(files(), ["true"]))


def test_a_session_lives_on_and_is_its_history(policy: Policy) -> None:
    box, held = Sandbox(policy, limits=Limits(seconds=20)), files()

    async def talk() -> list[str]:
        await box.shell(held, "cd src; x=5; echo made > made; (while true; do date +%N > /tmp/now; done) &")
        held.write("python.txt", "written in Python\n")
        said = [(await box.shell(held, "echo $x $PWD; cat ../python.txt; rm made")).out]
        twin = await resource.fork(box)
        said += [(await twin.shell(held, "echo $x; ls")).out]
        await box.python(held, "x = 1")
        said += [(await box.python(held, "print(x + 1); 1 / 0")).out]
        said += [(await box.python(held, "import os; os._exit(3)")).reason, (await box.python(held, "x")).err[-36:]]
        box.close()
        twin.close()
        return said

    missing = "\nNameError: name 'x' is not defined\n"
    assert run(talk) == ["5 /workspace/src\nwritten in Python\n", "5\napp.py\ndata.bin\n", "2\n", "ended", missing]


def test_everything_stands_still_between_requests(policy: Policy) -> None:
    box, held = Sandbox(policy, limits=Limits(seconds=20)), files()

    async def talk() -> list[str]:
        await box.shell(held, "(while true; do :; done) & read -r before _ < /proc/uptime")
        (name,) = containers(engine_.label)
        return podman("inspect", "--format", "{{.State.Status}}", name).stdout.split()

    engine_ = engine()
    run(lambda: until(lambda: not containers(engine_.label)))  # those of other tests
    assert run(talk) == ["paused"]
    box.close()


def test_a_session_that_meets_a_limit_begins_anew(policy: Policy) -> None:
    box, held = Sandbox(policy, limits=Limits(seconds=0.5)), files()

    async def talk() -> tuple[str, str]:
        await box.shell(held, "x=1")
        return (await box.shell(held, "sleep 100")).reason, (await box.shell(held, "echo [$x]")).out

    assert run(talk) == ("time", "[]\n")
    box.close()


def test_a_session_that_writes_too_much_begins_anew(policy: Policy) -> None:
    box, held = Sandbox(policy, limits=Limits(seconds=20, disk_bytes=MB)), files()

    async def talk() -> tuple[str, str]:
        too_much = "for n in 1 2 3; do head -c 500000 /dev/zero > $n; done"
        return (await box.shell(held, too_much)).reason, (await box.shell(held, "ls")).out

    assert run(talk) == ("disk", "notes.txt\nold.txt\nsrc\n")
    box.close()


@pytest.mark.slow
def test_a_folder_is_an_image_too(policy: Policy) -> None:
    with unpacked() as folder:
        box = Sandbox(msgspec.structs.replace(policy, image=folder))
        assert run(lambda: box.run(files(), python="print(open('notes.txt').read())")).out == "one\n\n"
        assert not (Path(folder) / "workspace").exists()


def test_an_image_that_is_not_there(policy: Policy) -> None:
    box = Sandbox(msgspec.structs.replace(policy, image="localhost/quintain-no-such-image"))
    with pytest.raises(SandboxUnavailable, match="quintain-no-such-image"):
        run(lambda: box.run(files(), ["true"]))


def test_a_forged_end_harms_nobody_else(policy: Policy) -> None:
    box, held = Sandbox(policy, limits=Limits(seconds=20)), files()
    done = run(
        lambda: box.run(held, shell="echo kept > kept; echo nonsense-without-end > /run/quintain/state; sleep 100")
    )
    assert (done.status, [one.path for one in done.changes]) == (137, ["kept"])


@pytest.mark.parametrize("what", ["run", "shell"])
def test_an_engine_that_ends_no_container_breaks_the_world(
    policy: Policy, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    box, held = Sandbox(policy, limits=Limits(seconds=0.3)), files()
    call = Engine.call

    async def broken(self: Engine, *words: str) -> tuple[int, str, str]:
        return (1, "", "out of order") if words[0] == "rm" else await call(self, *words)

    monkeypatch.setattr(Engine, "call", broken)
    with pytest.raises(EpisodeError, match="out of order") as info:
        if what == "run":
            run(lambda: box.run(held, ["sleep", "300"]))
        else:
            run(lambda: box.shell(held, "sleep 300"))
    assert (info.value.component, info.value.kind) == ("S", "session_lost")


def test_a_container_that_somebody_removes_breaks_the_world(policy: Policy) -> None:
    box, held = Sandbox(policy, limits=Limits(seconds=300)), files()
    engine_ = engine()

    async def talk() -> None:
        asking = asyncio.ensure_future(box.shell(held, "touch begun; sleep 300"))
        await until(lambda: [*engine_.home.glob("*/stage/upper/begun")] != [])
        (began,) = engine_.home.glob("*/stage/upper/begun")
        assert podman("rm", "--force", began.parents[2].name).returncode == 0
        with pytest.raises(EpisodeError, match="gone"):
            await asking

    run(talk)
    box.close()


# -- nothing is left


def test_stream_left_early_leaves_nothing(policy: Policy) -> None:
    box, held = Sandbox(policy, limits=Limits(seconds=300)), files()
    engine_ = engine()

    async def leave() -> None:
        stream = box.stream(held, shell="echo begun; sleep 300")
        async for _ in stream:
            break
        await stream.aclose()
        for seconds in (0, 0.01, 0.05, 0.1, 0.2, 0.4):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(box.run(held, ["sleep", "300"]), seconds)
        await until(lambda: not containers(engine_.label) and not [*engine_.home.iterdir()])

    run(leave)


def test_a_command_that_is_too_long_leaves_nothing(policy: Policy) -> None:
    box, home = Sandbox(policy), engine().home
    run(lambda: until(lambda: not [*home.iterdir()]))
    before = len([*Path("/proc/self/fd").iterdir()])
    with pytest.raises(OSError, match="too long"):
        run(lambda: box.run(files(), ["true"], env={f"V{n}": "x" * 100_000 for n in range(60)}))
    assert [*home.iterdir()] == []
    assert len([*Path("/proc/self/fd").iterdir()]) == before


def test_a_forked_process_leaves_its_parents_containers_alone(policy: Policy) -> None:
    box, held = Sandbox(policy, limits=Limits(seconds=20)), files()
    run(lambda: box.shell(held, "x=$RANDOM"))
    if (child := os.fork()) == 0:
        box.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert run(lambda: box.shell(held, "echo ${x:+kept}")).out == "kept\n"
    box.close()


def test_process_that_ends_without_closing_leaves_nothing(policy: Policy) -> None:
    words = [sys.executable, "-X", "dev", "-m", "tests.resources.sandbox.owner", policy.image, "0"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    assert done.stderr == ""
    assert containers(said["label"]) == []
    assert not Path(said["home"]).exists()


def test_a_process_that_is_killed_leaves_nothing(policy: Policy) -> None:
    words = [sys.executable, "-m", "tests.resources.sandbox.owner", policy.image, "300"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        said = json.loads(owner.stdout.readline())
        assert len(containers(said["label"])) == 2
        owner.kill()
    run(lambda: until(lambda: not containers(said["label"]) and not Path(said["home"]).exists()))


@pytest.mark.slow
def test_leftovers_of_a_killed_watchdog_are_swept_by_the_next(policy: Policy) -> None:
    words = [sys.executable, "-m", "tests.resources.sandbox.owner", policy.image, "300"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        said = json.loads(owner.stdout.readline())
        os.kill(said["watchdog"], signal.SIGKILL)
        owner.kill()
    assert len(containers(said["label"])) == 2
    run(engine().sweep)
    assert containers(said["label"]) == []
    assert not Path(said["home"]).exists()


def test_a_box_can_be_closed_when_its_loop_is_gone(policy: Policy) -> None:
    box, held = Sandbox(policy), files()
    engine_ = engine()
    talk: Callable[[str], Awaitable[Result]] = lambda text: box.shell(held, text)  # noqa: E731
    run(lambda: talk("x=1"))
    assert run(lambda: talk("echo $x")).out == "1\n"
    box.close()
    run(lambda: until(lambda: not containers(engine_.label) and not [*engine_.home.iterdir()]))
