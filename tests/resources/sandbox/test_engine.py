"""Engines that are missing or broken, and policies that contradict themselves: no container is needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from quintain.errors import UsageError
from quintain.resources.sandbox import Policy, Sandbox, SandboxUnavailable
from quintain.resources.sandbox.supervisor import cgroups
from tests.resources.sandbox.house import files, run


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        (Policy(image="debian"), "bubblewrap"),
        (Policy(backend="podman"), "image"),
        (Policy(backend="podman", image="--privileged"), "image"),
        (Policy(backend="docker", image="/root/file/system"), "by name"),
        (Policy(backend="podman", image="debian", network=("example.org:443",)), "network"),
        (Policy(backend="docker", image="debian", pool=1), "pool"),
    ],
)
def test_a_policy_that_contradicts_itself(policy: Policy, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        Sandbox(policy)


def test_a_policy_survives_a_dump() -> None:
    box = Sandbox(Policy(backend="podman", image="debian"))
    twin = Sandbox.load(box.dump())
    assert twin.policy == box.policy
    assert twin.digest() == box.digest() != Sandbox(Policy(backend="podman", image="other")).digest()


def test_an_engine_that_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    box = Sandbox(Policy(backend="docker", image="debian"))
    with pytest.raises(SandboxUnavailable, match="docker is not installed"):
        run(lambda: box.run(files(), ["true"]))
    assert not any(run(box.guarantees).values())


def test_an_engine_says_itself_what_is_wrong_and_sees_no_secret(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "docker"
    program.write_text(f"#!/bin/sh\nenv >> {tmp_path}/seen\necho 'no daemon today' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("QUINTAIN_TEST_SECRET", "hunter2")
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    with pytest.raises(SandboxUnavailable, match="no daemon today"):
        run(Sandbox(Policy(backend="docker", image="debian")).ready)
    seen = (tmp_path / "seen").read_text()
    assert "DOCKER_HOST=unix:///nowhere" in seen
    assert "hunter2" not in seen
    assert sorted(path.name for path in tmp_path.iterdir()) == ["docker", "seen"]


def test_an_engine_that_starts_no_container(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "docker"
    program.write_text('#!/bin/sh\n[ "$1" = run ] || exit 0\necho "no such image: debian" >&2\nexit 125\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr("quintain.resources.sandbox.engine._running", {})
    with pytest.raises(SandboxUnavailable, match="no such image: debian"):
        run(lambda: Sandbox(Policy(backend="docker", image="debian")).run(files(), ["true"]))


def test_limits_that_an_engine_set_are_read_where_control_groups_have_version_2(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    inner = tmp_path / "container"
    inner.mkdir()
    (inner / "memory.max").write_text("1000\n")
    (inner / "pids.max").write_text("max\n")
    (inner / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 1\n")
    monkeypatch.setattr(cgroups, "_mounts", lambda: {"": str(tmp_path)})
    monkeypatch.setattr(cgroups, "_paths", lambda _: {"": "/container"})
    group = cgroups.of(1)
    assert group.bounds(1000, 64) == {"memory", "cpuacct"}
    assert group.bounds(999, 64) == {"cpuacct"}
    assert group.cpu() == 2.5
    (inner / "pids.max").write_text("64\n")
    assert group.bounds(1000, 64) == {"memory", "cpuacct", "pids"}
