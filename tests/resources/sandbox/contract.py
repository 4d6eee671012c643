"""Contract of a sandbox of any backend: inherit it, and set the policy."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import socket
import tempfile
from pathlib import Path

import msgspec
import pytest

from quintain.errors import UsageError
from quintain.resources.sandbox import Chunk, Limits, Policy, Promise, Result, Sandbox, SandboxUnavailable
from quintain.resources.workspace import Workspace
from quintain.state import Shared
from tests.resources.sandbox import payloads
from tests.resources.sandbox.house import files, need, run

MB = 2**20


class SandboxContract:
    """Promises, each as a test.

    Attributes:
        policy: How programs are isolated.
    """

    policy = Policy()

    @pytest.fixture(autouse=True)
    def machine(self) -> None:
        need(self.policy)

    def play(self, workspace: Workspace | None = None, /, **what: object) -> Result:
        """Run one program."""
        box = Sandbox(self.policy)
        held = workspace if workspace is not None else files()
        return run(lambda: box.run(held, **what))  # type: ignore[arg-type]  # a test names what it means

    def python(self, code: str, **limits: float) -> Result:
        """Run Python within limits."""
        return self.play(python=code, limits=Limits(**{"seconds": 20.0, **limits}))  # type: ignore[arg-type]

    # -- programs

    def test_a_program_finds_the_files_and_leaves_what_it_made(self) -> None:
        held = files()
        done = self.play(held, python=payloads.EDITS)
        assert (done.status, done.err) == (0, "")
        assert [(one.path, one.before is None, one.after is None) for one in done.changes] == [
            ("link", True, False),
            ("new", True, False),
            ("new/run.sh", True, False),
            ("notes.txt", False, False),
            ("old.txt", False, True),
        ]
        assert held.text("notes.txt") == "two\n"
        assert held.stat("new/run.sh").mode == 0o755
        assert held.stat("link", follow=False).target == "notes.txt"
        again = self.play(held, shell="cat notes.txt; ./new/run.sh; ls")
        assert again.out == "two\nran\nlink\nnew\nnotes.txt\nsrc\n"
        assert again.changes == ()

    def test_exit_status_streams_and_input(self) -> None:
        done = self.play(shell="cat; echo wrong >&2; exit 7", stdin=b"said")
        assert (done.status, done.signal, done.out, done.err, done.reason) == (7, 0, "said", "wrong\n", "")

    def test_python_is_that_of_the_policy(self) -> None:
        done = self.python("import sys; print(sys.argv, sys.path[0] == '', __name__); 1/0")
        assert done.out == "['-c'] True __main__\n"
        assert done.err == (
            'Traceback (most recent call last):\n  File "<string>", line 1, in <module>\n'
            "ZeroDivisionError: division by zero\n"
        )
        assert done.status == 1
        assert self.python("import sys; sys.exit(5)").status == 5
        assert "SyntaxError" in self.python("x =").err

    def test_a_program_that_is_not_there(self) -> None:
        done = self.play(argv=["no-such-program"])
        assert (done.status, done.reason) == (127, "")
        assert "No such file or directory" in done.err

    def test_bytes_that_are_no_text(self) -> None:
        assert self.play(shell=r"printf '\377x'").out == "\ufffdx"

    def test_one_thing_is_run(self) -> None:
        for what in ({}, {"shell": "a", "python": "b"}, {"argv": "ls"}, {"argv": ["a\0b"]}, {"shell": "x" * 200_000}):
            with pytest.raises(UsageError):
                self.play(**what)

    def test_the_same_program_says_the_same(self) -> None:
        first, second = self.python(payloads.SURROUNDINGS), self.python(payloads.SURROUNDINGS)
        assert first == second, (first, second)  # This is not a module of tests, in which pytest would show them.
        assert first.out.splitlines()[:6] == ["2", "1000 1000", "sandbox", "('UTC', 'UTC')", "C.UTF-8", "/workspace"]

    def test_monotonic_clock_begins_with_the_program(self) -> None:
        if not run(Sandbox(self.policy).guarantees)["monotonic"]:
            pytest.skip("this kernel has no time namespaces")
        assert float(self.python("import time; print(time.monotonic())").out) < 600

    def test_wall_clock_is_the_worlds_when_required(self) -> None:
        policy = msgspec.structs.replace(self.policy, require=("clock",))
        need(policy)
        box, shared = Sandbox(policy), Shared()
        box.bind(shared)
        shared.clock.advance(10**9)
        assert run(lambda: box.run(files(), ["date", "+%F"])).out == "2001-09-09\n"
        assert run(lambda: box.run(files(), python="import time; print(int(time.time() // 100))")).out == "10000000\n"

    # -- isolation

    def test_program_sees_nothing_of_this_process(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("QUINTAIN_TEST_SECRET", "hunter2")
        done = self.python(payloads.PROCESSES)
        environments, pids, fds = done.out.splitlines()
        assert "hunter2" not in environments
        assert "QUINTAIN" not in environments
        assert set(pids.split()) <= {"1", "2"}
        assert fds == "0 1 2"

    def test_program_sees_nothing_of_the_machine(self) -> None:
        with tempfile.NamedTemporaryFile("w", suffix=".secret") as secret:
            secret.write("hunter2")
            secret.flush()
            done = self.python(payloads.READS.replace("SECRET", secret.name).replace("HERE", str(Path.cwd())))
        assert done.out == "nothing\n", done.out

    def test_readable_paths_can_be_read_and_not_written(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            Path(name).chmod(0o755)
            program = Path(name) / "python"
            program.write_text('#!/bin/sh\necho mine; exec /usr/bin/python3 "$@"\n')
            program.chmod(0o755)
            policy = msgspec.structs.replace(self.policy, readable=(name,), python=str(program), env={"A": name})
            box = Sandbox(policy)
            done = run(lambda: box.run(files(), ["sh", "-c", 'ls "$A"; touch "$A/x" || echo refused']))
            assert done.out == "python\nrefused\n"
            if not policy.pool:  # The interpreter of a sandbox that waited spoke before anybody listened.
                assert run(lambda: box.run(files(), python="print('yours')")).out == "mine\nyours\n"

    def test_program_writes_only_into_its_own_folders(self) -> None:
        assert self.python(payloads.WRITES).out == "/dev/shm /tmp /workspace\n"

    def test_program_reaches_no_network(self) -> None:
        name = f"\0quintain-{os.getpid()}"
        with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as local:
            local.bind(name)
            local.listen()
            done = self.python(f"PORT, NAME = {server.getsockname()[1]}, {name!r}\n{payloads.CONNECTS}")
        assert done.out.splitlines() == ["tcp refused", "far unreachable", "unix refused", "packet 97", "netlink 97"]

    def test_dangerous_system_calls_are_refused(self) -> None:
        done = self.python(payloads.SYSCALLS)
        refusals = ("EPERM", "ENOSYS", "EINVAL")  # the last for users that there are none of
        allowed = [line for line in done.out.splitlines() if not line.endswith(refusals)]
        assert allowed == [], done.out + done.err
        assert len(done.out.splitlines()) > 15

    def test_program_has_and_gets_no_capability(self) -> None:
        filtered = "until grep -q 'Seccomp:.2' /proc/1/status; do :; done"  # bubblewrap forks before it filters itself
        what = "grep -E '^Cap|NoNewPrivs|Seccomp:'"
        mine, init = (self.play(shell=f"{filtered}; {what} /proc/{pid}/status") for pid in ("self", 1))
        assert mine.out == init.out, (mine, init)  # of whom a program can be, for it may write into its memory
        values = dict(line.split(":") for line in mine.out.replace("\t", "").splitlines())
        assert {values.pop("NoNewPrivs"), values.pop("Seccomp")} == {"1", "2"}
        assert set(values.values()) == {"0" * 16}

    def test_a_link_out_of_the_workspace_is_a_link(self) -> None:
        held = files()
        done = self.play(held, shell="ln -s /etc/shadow stolen; ln -s / all; ln -s ../../.. up; ln stolen twice")
        assert done.status == 0, done.err
        targets = {one.path: one.after.target for one in done.changes if one.after}
        assert targets == {"all": "/", "stolen": "/etc/shadow", "twice": "/etc/shadow", "up": "../../.."}

    def test_special_files_stay_behind(self) -> None:
        held = files()
        done = self.play(held, python="import os, socket; os.mkfifo('pipe'); socket.socket(socket.AF_UNIX).bind('s')")
        assert (done.status, done.changes) == (0, ()), done.err

    # -- limits

    def test_time_limit_ends_the_program(self) -> None:
        done = self.play(shell="echo begun; exec sleep 100", limits=Limits(seconds=0.4))
        assert (done.out, done.reason, done.status, done.signal) == ("begun\n", "time", 137, signal.SIGKILL)

    def test_time_holds_for_who_traps_every_signal(self) -> None:
        done = self.python(payloads.TRAPS, seconds=0.7)
        assert (done.out, done.reason) == ("trapped\n", "time")

    def test_cpu_limit_ends_the_program(self) -> None:
        assert self.python("while True: pass", cpu_seconds=0.4).reason == "cpu"

    @pytest.mark.parametrize("what", ["anonymous", "tmp", "shm", "workspace"])
    def test_memory_limit_ends_the_program(self, what: str) -> None:
        need(msgspec.structs.replace(self.policy, require=("memory",)))
        done = self.python(payloads.FILLS.replace("WHAT", what), memory_bytes=64 * MB, disk_bytes=4096 * MB)
        assert (done.reason, done.status) == ("memory", 137)

    def test_process_limit_refuses_more(self) -> None:
        need(msgspec.structs.replace(self.policy, require=("processes",)))
        done = self.python(payloads.FORKS, processes=20)
        assert 10 <= int(done.out) <= 20, done.err

    def test_a_fork_bomb(self) -> None:
        need(msgspec.structs.replace(self.policy, require=("processes",)))
        done = self.python(payloads.BOMB, processes=30, seconds=1.0)
        assert done.reason == "time"

    def test_disk_limit_refuses_more(self) -> None:
        done = self.python(payloads.DISK, disk_bytes=4 * MB)
        assert done.out == "No space left on device\n" * 3
        assert sum(one.after.size for one in done.changes if one.after) <= 4 * MB

    def test_file_limit_refuses_more(self) -> None:
        done = self.python(payloads.INODES, files=100)
        assert done.out == "No space left on device\n" * 3
        assert len(done.changes) <= 100

    def test_files_that_were_there_do_not_count(self) -> None:
        held = Workspace({"big": b"x" * 8 * MB})
        assert self.play(held, shell="echo small > small; ls", limits=Limits(disk_bytes=MB)).out == "big\nsmall\n"

    def test_output_limit_cuts_and_ends(self) -> None:
        done = self.play(shell="yes", limits=Limits(output_bytes=10_000))
        assert (done.is_cut, done.reason, done.out) == (True, "output", "y\n" * 5000)

    def test_output_within_the_limit_is_whole(self) -> None:
        done = self.play(shell="seq 20000; seq 20000 >&2")
        numbers = "".join(f"{n}\n" for n in range(1, 20001))
        assert (done.out, done.err, done.is_cut) == (numbers, numbers, False)

    def test_open_files(self) -> None:
        assert self.python(payloads.OPENS, open_files=40).out == "Too many open files 40\n"

    def test_limits_of_one_call_may_be_more_than_the_usual_ones(self) -> None:
        most = min(6000, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        limits = Limits(open_files=most, cpu_seconds=100, memory_bytes=2**40, processes=2**30)
        assert self.play(shell="ulimit -n; ulimit -t", limits=limits).out == f"{most}\n100\n"
        assert self.play(python="x = bytearray(2**30)", limits=limits).status == 0

    # -- ends

    def test_daemons_end_with_the_program(self) -> None:
        held = files()
        done = self.play(held, python=payloads.DAEMON)
        assert (done.out, done.status, done.reason) == ("gone\n", 0, "")
        assert self.play(held, shell="ls").out == "notes.txt\nold.txt\nsrc\n"

    def test_program_may_close_its_descriptors(self) -> None:
        done = self.play(shell="exec <&- >&- 2>&-; echo x > made; exit 3", limits=Limits(seconds=20))
        assert (done.status, [one.path for one in done.changes]) == (3, ["made"])

    def test_program_may_kill_every_process(self) -> None:
        assert self.play(shell="kill -9 $$").signal == signal.SIGKILL
        assert self.play(shell="kill -TERM $$").signal == signal.SIGTERM
        assert self.play(shell="kill -9 -1; sleep 0; exit 4", limits=Limits(seconds=20)).reason == ""
        assert self.play(shell="kill -9 1; exit 5").status == 5

    # -- streams

    def test_a_stream_yields_what_comes(self) -> None:
        async def read() -> list[Chunk | Result]:
            stream = Sandbox(self.policy).stream(files(), shell="echo a; echo b >&2; echo c > made; exit 2")
            return [one async for one in stream]

        *chunks, end = run(read)
        assert isinstance(end, Result)
        assert (end.status, end.out, end.err, [one.path for one in end.changes]) == (2, "", "", ["made"])
        said = [one for one in chunks if isinstance(one, Chunk)]
        assert b"".join(one.out for one in said) == b"a\n"
        assert b"".join(one.err for one in said) == b"b\n"

    def test_slow_reader_makes_the_program_wait(self) -> None:
        async def read() -> list[int]:
            limits = Limits(output_bytes=64 * MB)
            stream = Sandbox(self.policy).stream(files(), shell="head -c 4000000 /dev/zero", limits=limits)
            return [len(one.out) async for one in stream if isinstance(one, Chunk)]

        sizes = run(read)
        assert sum(sizes) == 4_000_000
        assert max(sizes) <= 2**17  # a chunk, and at the end what the pipe held

    # -- the network

    def test_network_of_the_policy_is_reachable_and_no_other(self) -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
            await writer.drain()
            writer.close()

        async def talk() -> Result:
            server = await asyncio.start_server(answer, "127.0.0.1", 0)
            other = await asyncio.start_server(answer, "127.0.0.1", 0)
            async with server, other:
                ports = [one.sockets[0].getsockname()[1] for one in (server, other)]
                policy = msgspec.structs.replace(self.policy, network=(f"127.0.0.1:{ports[0]}",))
                code = payloads.FETCHES.replace("PORTS", str(ports))
                return await Sandbox(policy).run(files(), python=code, limits=Limits(seconds=30))

        done = run(talk)
        assert done.out.splitlines() == ["hello", "403", "directly refused"], done.err
        assert [(one.is_allowed, one.down_bytes > 0) for one in done.contacts] == [(True, True), (False, False)]

    # -- refusals

    def test_impossible_policies_are_refused(self) -> None:
        with pytest.raises(UsageError):
            Sandbox(Policy(network=("http://example.org",)))
        with pytest.raises(UsageError, match="replayed"):
            run(lambda: Sandbox(Policy(network=("example.org:443",))).shell(files(), "ls"))
        missing: list[Promise] = [name for name, holds in run(Sandbox(self.policy).guarantees).items() if not holds]
        for name in missing:
            policy = msgspec.structs.replace(self.policy, require=(name,))
            with pytest.raises(SandboxUnavailable, match=name):
                run(lambda policy=policy: Sandbox(policy).run(files(), ["true"]))  # type: ignore[misc]
