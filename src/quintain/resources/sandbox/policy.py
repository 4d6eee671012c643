"""What a program may do and use, and what came of it: plain data, and the words that bubblewrap understands."""

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
from .keeper.roots import HOME, UID
from .proxy import Contact, allow

Backend = Literal["bubblewrap", "podman", "docker"]

Promise = Literal["isolation", "time", "output", "disk", "memory", "processes", "cpu", "monotonic", "clock"]
"""What can be asked of a machine: see `Sandbox.guarantees`."""

DOOR, PROXY, FORWARD = "proxy", "/run/proxy", "forward.py"
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
    """This machine cannot isolate a program as asked, so nothing was run; the message says what would help."""


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a program may use, with all that it starts.

    In a session `seconds` and `output_bytes` count for each request, the others from its beginning.

    Attributes:
        seconds: Of real time.
        cpu_seconds: Of all processors together, checked every 20 ms.
        memory_bytes: Of all processes together, with what they write into files in memory.
        processes: Processes and threads at once.
        output_bytes: Standard output and standard error together; what writes more is ended.
        disk_bytes: What it may add to the workspace, `/tmp` and `/dev/shm` together.
        files: How many files and folders it may add there.
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
    """How a program is isolated.

    Attributes:
        require: What the machine must guarantee; where it cannot, nothing is run.
        python: The interpreter, a path that holds for every user of the machine.
        readable: Folders and files of the machine that programs may read, beside `/usr`.
        env: Variables, beside those that are always set.
        network: What `run` and `stream` may reach, through a proxy: "host:port" and more, see `hosts.Allowed`. Nothing
            is reached when empty. What a network answers is not replayed.
        pool: Sandboxes that are kept ready; each takes about 10 MB.
        overlay: Whether the files of a workspace may be layers of an overlay, where the machine can do that; else they
            are copied for each program.
        groups: The control groups that may be used: whichever can be written, those of one version, or none.
        backend: What isolates: bubblewrap, or containers of an engine that is installed and set up. Containers have
            neither network nor pool; `overlay` and `groups` say nothing about them, and `env` comes before the
            variables of the image.
        image: Where containers take their programs from, `/bin/sh` and `env` among them: the name of an image that the
            engine has, for nothing is fetched; or for podman a folder that is a root file system, and is not changed.
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
    """What came of a program.

    Attributes:
        status: Its exit status; 128 and the signal's number where a signal ended it, as shells have it.
        out: Standard output, as UTF-8; what is not becomes U+FFFD.
        err: Standard error.
        is_cut: Whether it wrote more than `Limits.output_bytes`; the rest is lost.
        reason: The limit that it was ended for: "time", "cpu", "memory", "processes", "output" or "disk"; empty when
            it ended by itself. "ended" for a session that a program ended, which then begins anew.
        changes: What it changed in the workspace, by path.
        contacts: What it asked of the network, where the policy names one.
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
        """The signal that ended it; 0 for none."""
        return self.status - 128 if self.status - 128 in set(signal.Signals) else 0


def check(policy: Policy) -> None:
    """What can be known of a policy before anything runs.

    Raises:
        UsageError: It contradicts itself.
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
    """The words that run a program, or Python code, in a sandbox."""
    words = tuple(argv) or (policy.python, "-c", code)
    return (policy.python, "-I", "-S", f"/run/{FORWARD}", PROXY, *words) if policy.network else words


def environment(policy: Policy, env: Mapping[str, str]) -> dict[str, str]:
    """All variables of a program."""
    return {**_ENVIRONMENT, **policy.env, **env}


@functools.cache
def can_disable_userns(program: str) -> bool:
    """Whether this bubblewrap can keep programs from making user namespaces (the seccomp filter does so too)."""
    helped = subprocess.run([program, "--help"], capture_output=True, text=True, check=False, env={})
    return "--disable-userns" in helped.stdout


def filters() -> bytes:
    """The seccomp filter of this machine.

    Raises:
        SandboxUnavailable: There is none for its architecture.
    """
    try:
        return seccomp.assemble()
    except LookupError as error:
        raise SandboxUnavailable(str(error)) from error


def places(policy: Policy) -> dict[str, bool]:
    """Where bubblewrap mounts more than every program sees, and whether that is a folder."""
    found = {path: Path(path).is_dir() for path in policy.readable if Path(path).exists()}
    return found | (dict.fromkeys((PROXY, f"/run/{FORWARD}"), False) if policy.network else {})


def arguments(policy: Policy, *, program: str, env: Mapping[str, str]) -> list[str]:
    """What bubblewrap is told. The keeper puts the sandbox's folder where a word begins with `{box}`."""
    words = ["--unshare-user", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"]
    words += ["--uid", str(UID), "--gid", str(UID), "--hostname", "sandbox"]
    words += ["--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    words += ["--disable-userns"] if can_disable_userns(program) else []
    words += ["--dev-bind", "{box}/root", "/", "--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys"]
    for path in policy.readable:
        words += ["--ro-bind", path, path]
    if policy.network:
        words += ["--bind", f"{{box}}/{DOOR}", PROXY, "--ro-bind", f"{{box}}/{FORWARD}", f"/run/{FORWARD}"]
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
    """The limits that the keeper holds."""
    return {
        "seconds": limits.seconds,
        "cpu": limits.cpu_seconds,
        "memory": limits.memory_bytes,
        "processes": limits.processes,
        "disk": limits.disk_bytes,
        "files": limits.files,
    }
