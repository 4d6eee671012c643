"""Rights of a program, and its result: plain data, and the arguments of bubblewrap."""

from __future__ import annotations

import functools
import math
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from quintain.errors import QuintainError, UsageError
from quintain.resources.workspace import FileChange

from . import seccomp
from .proxy import Contact, allow
from .supervisor.roots import HOME, UID

Backend = Literal["bubblewrap", "podman", "docker"]

Promise = Literal["isolation", "time", "output", "disk", "memory", "processes", "cpu", "monotonic", "clock"]
"""Guarantees that a policy can require: see `Sandbox.guarantees`."""

SOCKET, PROXY, FORWARD = "proxy", "/run/proxy", "forward.py"
"""The socket that leads to the proxy, for us and for the program, and what carries connections there."""

_ENVIRONMENT = {
    "HOME": "/tmp",  # noqa: S108  # the sandbox's own
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
    "TMPDIR": "/tmp",  # noqa: S108
    "TZ": "UTC",
    "USER": "user",
}


class SandboxUnavailable(QuintainError):
    """Error for a machine that cannot isolate as required. Nothing was run; the message suggests a remedy."""


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of a program and all processes that it starts.

    In a session `seconds` and `output_bytes` count for each request, the others from its beginning.

    Attributes:
        seconds: Real time.
        cpu_seconds: Time of all processors together, checked every 20 ms.
        memory_bytes: Memory of all processes together, with the files that they write into memory.
        processes: Processes and threads at once.
        output_bytes: Standard output and standard error together; a program that writes more is ended.
        disk_bytes: Growth of the workspace, `/tmp` and `/dev/shm` together.
        files: Number of files and folders that it may add there.
        open_files: Descriptors of one process.
    """

    seconds: float = 30.0
    cpu_seconds: float = 30.0
    memory_bytes: int = 512 * 2**20
    processes: int = 64
    output_bytes: int = 2**20
    disk_bytes: int = 256 * 2**20
    files: int = 20_000
    open_files: int = 256

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if not 0 < getattr(self, name) < 2**62:
                raise ValueError(f"{name} must be above 0, got {getattr(self, name)}")
        for name in ("seconds", "cpu_seconds"):  # An int would become a float in a copy, and change the digest.
            msgspec.structs.force_setattr(self, name, float(getattr(self, name)))


class Policy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Isolation of programs.

    Attributes:
        require: Guarantees that the machine must keep; if it cannot, nothing is run.
        python: The interpreter, a path that is valid for every user of the machine.
        readable: Folders and files of the machine that programs may read, besides `/usr`.
        env: Variables, besides those that are always set.
        network: Hosts that `run` and `stream` may reach, through a proxy: "host:port", or
            "host:port=address:port" for one that an address of this machine stands for; see `hosts.Allowed`.
            Empty for none. Answers of a network are not replayed.
        pool: Number of sandboxes that are kept ready; each takes about 10 MB.
        overlay: True if the files of a workspace may be layers of an overlay, on machines that can do that; else they
            are copied for each program.
        groups: The control groups that may be used: whichever can be written, those of one version, or none.
        backend: Isolation by bubblewrap, or by containers of an engine that is installed and set up. Containers have
            neither network nor pool; `overlay` and `groups` do not affect them, and `env` comes before the variables of
            the image.
        image: Source of a container's programs, `/bin/sh` and `env` among them: the name of an image that the engine
            has, for nothing is fetched; or for podman a folder that is a root file system, and is not changed.
    """

    require: tuple[Promise, ...] = ()
    python: str = "/usr/bin/python3"
    readable: tuple[str, ...] = ()
    env: dict[str, str] = {}
    network: tuple[str, ...] = ()
    pool: int = 0
    overlay: bool = True
    groups: Literal["auto", "v1", "v2", "none"] = "auto"
    backend: Backend = "bubblewrap"
    image: str = ""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a program.

    Attributes:
        status: Its exit status; 128 plus the signal's number if a signal ended it, as shells have it.
        out: Standard output, as UTF-8; invalid bytes become U+FFFD.
        err: Standard error.
        is_cut: True if it wrote more than `Limits.output_bytes`; the rest is lost.
        reason: The limit that ended it: "time", "cpu", "memory", "processes", "output" or "disk"; empty if it ended by
            itself. "ended" for a session that a program ended, which then begins anew.
        changes: Its changes to the workspace, by path.
        contacts: Its requests to the network, if the policy allows one.
    """

    status: int
    out: str = ""
    err: str = ""
    is_cut: bool = False
    reason: str = ""
    changes: tuple[FileChange, ...] = ()
    contacts: tuple[Contact, ...] = ()

    @property
    def signal(self) -> int:
        """Returns the signal that ended it; 0 for none."""
        return self.status - 128 if self.status - 128 in set(signal.Signals) else 0


def check(policy: Policy) -> None:
    """Checks a policy before anything runs.

    Raises:
        UsageError: The policy contradicts itself.
    """
    allow(policy.network)
    if policy.backend == "bubblewrap":
        if policy.image:
            raise UsageError(f"bubblewrap takes programs from this machine, not from an image: {policy.image!r}")
        return
    for name in ("network", "pool"):
        if getattr(policy, name):
            raise UsageError(f"containers have no {name}: use backend='bubblewrap', not {policy.backend!r}")
    if not policy.image or policy.image.startswith("-"):
        raise UsageError(f"{policy.backend} needs the name of an image, got image={policy.image!r}")
    if policy.backend == "docker" and policy.image.startswith("/"):
        raise UsageError(f"docker takes images by name; podman takes folders too: {policy.image!r}")


def command(policy: Policy, argv: Sequence[str], code: str) -> tuple[str, ...]:
    """Returns the words that run a program, or Python code, in a sandbox."""
    words = tuple(argv) or (policy.python, "-c", code)
    return (policy.python, "-I", "-S", f"/run/{FORWARD}", PROXY, *words) if policy.network else words


def environment(policy: Policy, env: Mapping[str, str]) -> dict[str, str]:
    """Returns all variables of a program."""
    return {**_ENVIRONMENT, **policy.env, **env}


@functools.cache
def can_disable_userns(program: str) -> bool:
    """True if this bubblewrap can keep programs from making user namespaces (the seccomp filter does so too)."""
    helped = subprocess.run([program, "--help"], capture_output=True, text=True, check=False, env={})
    return "--disable-userns" in helped.stdout


def filters() -> bytes:
    """Returns the seccomp filter of this machine.

    Raises:
        SandboxUnavailable: There is none for its architecture.
    """
    try:
        return seccomp.assemble()
    except LookupError as error:
        raise SandboxUnavailable(str(error)) from error


def places(policy: Policy) -> dict[str, bool]:
    """Returns bubblewrap's mount points beyond those of every program, each True for a folder."""
    found = {path: Path(path).is_dir() for path in policy.readable if Path(path).exists()}
    return found | (dict.fromkeys((PROXY, f"/run/{FORWARD}"), False) if policy.network else {})


def arguments(policy: Policy, *, program: str, env: Mapping[str, str]) -> list[str]:
    """Returns the arguments of bubblewrap. The supervisor replaces `{box}` by the sandbox's folder."""
    words = ["--unshare-user", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"]
    words += ["--uid", str(UID), "--gid", str(UID), "--hostname", "sandbox"]
    words += ["--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    words += ["--disable-userns"] if can_disable_userns(program) else []
    words += ["--dev-bind", "{box}/root", "/", "--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys"]
    for path in policy.readable:
        words += ["--ro-bind", path, path]
    if policy.network:
        words += ["--bind", f"{{box}}/{SOCKET}", PROXY, "--ro-bind", f"{{box}}/{FORWARD}", f"/run/{FORWARD}"]
    words += ["--chdir", HOME]
    for name, value in environment(policy, env).items():
        words += ["--setenv", name, value]
    return words


def rlimits(limits: Limits, *, has_groups: bool) -> dict[str, tuple[int, int]]:
    """Limits of each process alone, soft and hard, which hold whether or not there are control groups."""
    cpu = math.ceil(limits.cpu_seconds)
    found = {"RLIMIT_NOFILE": limits.open_files, "RLIMIT_CORE": 0, "RLIMIT_MSGQUEUE": 0}
    if not has_groups:
        found["RLIMIT_AS"] = limits.memory_bytes
    # The first signal says why; who ignores it is killed a second later.
    return {name: (value, value) for name, value in found.items()} | {"RLIMIT_CPU": (cpu, cpu + 1)}


def mounting(limits: Limits) -> dict[str, Any]:
    """Returns the limits that the supervisor enforces."""
    return {
        "seconds": limits.seconds,
        "cpu": limits.cpu_seconds,
        "memory": limits.memory_bytes,
        "processes": limits.processes,
        "disk": limits.disk_bytes,
        "files": limits.files,
    }
