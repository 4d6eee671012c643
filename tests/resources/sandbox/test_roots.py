"""Root file systems are made ahead, and follow the policy, whoever starts a program and where."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from quintain.resources.sandbox import Limits, Policy, Result, Sandbox, SandboxUnavailable, link
from quintain.resources.sandbox.supervisor import roots
from quintain.resources.workspace import Workspace
from tests.resources.sandbox.house import need, run, settled

KEPT_READY = Policy(pool=1)
LATE = """
import sys
from pathlib import Path
from quintain.resources.sandbox.supervisor import kernel, roots
kernel.enter_namespaces()
home = sys.argv[1]
kernel.mount("tmpfs", home, "tmpfs")
box = Path(home, "1")
for name in ("root", "shm", "tmp", "work"):
    (box / name).mkdir(parents=True)
late = box / "work" / "late"
late.mkdir()
kernel.mount("tmpfs", str(late), "tmpfs")
(late / "notes.txt").touch()
root = roots.Root(home)
root.show(str(box))
print(*Path(f"{box}/root{roots.HOME}/late").iterdir())
"""


@pytest.fixture(autouse=True)
def machine() -> None:
    need(Policy())


def shell(command: str, policy: Policy | None = None) -> Result:
    return run(lambda: Sandbox(policy).run(Workspace(), shell=command))


@pytest.mark.parametrize("policy", [Policy(), KEPT_READY], ids=["cold", "pool"])
def test_a_root_shows_what_it_must_and_no_more(policy: Policy) -> None:
    links = {name for name in ("bin", "lib", "lib32", "lib64", "libx32", "sbin") if Path(f"/{name}").exists()}
    assert set(shell("ls /", policy).out.split()) == links | {"dev", "etc", "proc", "tmp", "usr", "workspace"}
    devices = shell("cd /dev; for each in *; do [ ! -c $each ] || echo $each; done; readlink fd ptmx", policy)
    assert devices.out == "full\nnull\nptmx\nrandom\ntty\nurandom\nzero\n/proc/self/fd\npts/ptmx\n"


def test_devices_do_what_devices_do() -> None:
    done = shell("echo lost > /dev/null; head -c 3 /dev/zero | od -An -tx1; head -c 9 /dev/urandom | wc -c")
    assert (done.out, done.err) == (" 00 00 00\n9\n", "")
    assert "No space left on device" in shell("cp /etc/hosts /dev/full").err


def test_terminals_are_a_programs_own() -> None:
    program = "import os, pty; print(os.ttyname(pty.openpty()[1]), sorted(os.listdir('/dev/pts')))"
    done = run(lambda: Sandbox().run(Workspace(), python=program))
    assert (done.out, done.err) == ("/dev/pts/0 ['0', 'ptmx']\n", "")


def test_a_program_reaches_itself_by_network() -> None:
    program = """
import socket
for family, name in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    with socket.create_server((name, 0), family=family) as server:
        socket.create_connection(server.getsockname()[:2], 5).close()
        print(name)
"""
    done = run(lambda: Sandbox().run(Workspace(), python=program))
    assert (done.out, done.err) == ("127.0.0.1\n::1\n", "")


@pytest.mark.parametrize("kind", ["mnt", "net", "ipc", "pid", "uts", "user", "cgroup", "time"])
def test_no_namespace_is_shared(kind: str) -> None:
    supervisor = link.supervisor().process.pid
    mine = {str(Path(f"/proc/{pid}/ns/{kind}").readlink()) for pid in (os.getpid(), supervisor)}
    theirs = {shell(f"readlink /proc/self/ns/{kind}").out.strip() for _ in range(2)}
    if kind == "time" and "monotonic" not in link.supervisor().kinds:
        pytest.skip("this kernel has no time namespaces")
    assert not mine & theirs
    both = shell(f"readlink /proc/self/ns/{kind} /proc/1/ns/{kind}").out.split()
    assert both[0] == both[1]


@pytest.mark.parametrize("pool", [0, 1])
def test_readable_paths_have_a_place_in_their_own_root_alone(pool: int) -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        Path(name).chmod(0o755)
        inner = Path(name) / "folder" / "file"
        inner.parent.mkdir()
        inner.write_text("read\n")
        policy = Policy(readable=(str(inner), f"{name}/folder"), pool=pool)
        one = shell(f"cat {inner}; echo > {inner}; echo > {name}/new; cat /etc/hosts; ls /var /var/tmp", policy)
        assert (
            one.out == f"read\n127.0.0.1 localhost sandbox\n::1 localhost\n/var:\ntmp\n\n/var/tmp:\n{Path(name).name}\n"
        )
        assert one.err.count("Read-only file system") == 2
        assert shell("ls -d /var").status != 0
        assert [*Path(name).iterdir()] == [inner.parent]


def test_readable_paths_may_exist_already_or_be_links() -> None:
    linked = next(name for name in ("/lib/os-release", "/lib/terminfo", "/bin/sh") if Path(name).exists())
    done = shell(f"ls -d {linked} /usr/share; cat /etc/passwd", Policy(readable=(linked, "/usr/share", "/etc/passwd")))
    assert (done.out, done.err) == (f"{linked}\n/usr/share\n{Path('/etc/passwd').read_text()}", "")


@pytest.mark.parametrize("is_named", [False, True])
def test_a_root_takes_nothing_of_what_a_program_may_write(is_named: bool) -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        Path(name).chmod(0o755)
        box = Sandbox(Policy(readable=(name,) if is_named else ()), limits=Limits(disk_bytes=4096, files=8))
        program = "for n in 1 2 3 4 5 6 7 8 9; do touch /tmp/$n || break; done; echo $n; stat -f -c %c /"
        done = run(lambda: box.run(Workspace(), shell=program))
    assert done.out.startswith("9\n"), done
    assert int(done.out.split()[1]) > 100, "its root is on the same file system"


def test_a_root_takes_over_what_was_mounted_meanwhile(tmp_path: Path) -> None:
    # Program files that were mounted while the kernel waited for its lock were missing in the sandbox.
    said = subprocess.run([sys.executable, "-c", LATE, tmp_path], check=False, capture_output=True, text=True)
    assert Path(said.stdout.strip()).name == "notes.txt", said.stderr


def test_missing_readable_paths_make_the_sandbox_unavailable() -> None:
    with pytest.raises(SandboxUnavailable, match="/no/such/folder"):
        shell("true", Policy(readable=("/no/such/folder",)))


def test_neither_a_mask_nor_an_odd_folder_of_who_starts_it_matters(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        odd = Path(name) / "a folder\\with: odd, names\n"
        odd.mkdir()
        for folder in (odd, Path(name)):
            folder.chmod(0o755)
        monkeypatch.setattr(tempfile, "tempdir", str(odd))
        monkeypatch.setattr(link, "_running", {})
        before = os.umask(0o077)
        try:
            made = Workspace({"notes.txt": "one\n"})
            done = run(lambda: Sandbox().run(made, shell="umask; cat notes.txt; mkdir new; touch /usr/new; ls /etc"))
        finally:
            os.umask(before)
            link.supervisor().stop()
        assert done.out.startswith("0022\none\n")
        assert "hosts" in done.out
        assert "Read-only file system" in done.err
        assert made.stat("new").mode == 0o755
        assert [*odd.iterdir()] == []


def test_errors_of_the_prefork_are_raised_at_the_first_request() -> None:
    async def talk() -> None:
        supervisor, box = link.supervisor(), Sandbox()
        await box.run(Workspace(), ["true"])
        before = await settled()
        rules = supervisor.root / "filter"
        held = rules.read_bytes()
        rules.unlink()
        supervisor.open().close()  # one that was made before
        try:
            with pytest.raises(SandboxUnavailable, match="filter"):
                await box.run(Workspace(), ["true"])
        finally:
            rules.write_bytes(held)
            supervisor.open().close()
        assert (await box.run(Workspace(), ["true"])).status == 0
        assert await settled() == before

    run(talk)


def test_a_root_shows_what_the_loader_knows_now(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    known = tmp_path / "cache"
    monkeypatch.setattr(roots, "_COPIED", (str(known),))
    root = roots.Root.__new__(roots.Root)  # Without mounts, which need more than a test has.
    monkeypatch.setattr(root, "_place", str(tmp_path), raising=False)
    monkeypatch.setattr(root, "_seen", {}, raising=False)
    shown = Path(f"{tmp_path}/skeleton{known}")
    shown.parent.mkdir(parents=True)
    root.refresh()
    assert not shown.exists()
    for text in ("one", "another"):
        known.write_text(text)
        root.refresh()
        assert shown.read_text() == text
    known.unlink()
    root.refresh()
    assert [*shown.parent.iterdir()] == []
