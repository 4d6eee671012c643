"""Capabilities of this machine: its supervisors and engines, their guarantees, and the pool of sandboxes."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

import msgspec

from quintain import codec
from quintain.resources.workspace import Workspace

from . import engine, link
from .containers import Contained
from .engine import Engine
from .link import Supervisor
from .policy import Limits, Policy, Promise, SandboxUnavailable
from .running import PRLIMIT, Live, ProgramRequest, Ready, Running, elsewhere

_HELP: dict[Promise, str] = {
    "memory": "a control group with memory that this user can write",
    "processes": "a control group with pids that this user can write, or prlimit of util-linux",
    "cpu": "a control group that counts CPU and that this user can write",
    "clock": "libfaketime: apt-get install libfaketime",
    "monotonic": "Linux 5.6 with time namespaces",
}
_LIBFAKETIME = "lib/*/faketime/libfaketime.so.1"


async def home(policy: Policy) -> Supervisor | Engine:
    """Returns the starter of programs for this policy, proven to isolate and to keep the required guarantees.

    Raises:
        SandboxUnavailable: This machine does not have one.
    """
    found = await (_supervisor(policy) if policy.backend == "bubblewrap" else _engine(policy))
    missing: list[Promise] = [name for name in policy.require if not _holds(found, policy, name)]
    if missing and policy.backend == "bubblewrap":
        needs = ", ".join(f"{name} (it needs {_HELP[name]})" for name in missing)
        raise SandboxUnavailable(f"this machine cannot guarantee {needs}")
    if missing:
        raise SandboxUnavailable(f"containers of {policy.backend} cannot guarantee {', '.join(missing)} here")
    return found


async def begin(
    home: Supervisor | Engine,
    files: Workspace,
    request: ProgramRequest,
    *,
    rules: Policy,
    limits: Limits,
    is_session: bool = False,
) -> Running:
    """Starts a program on the files of a workspace; that of a session accepts requests."""
    if isinstance(home, Engine):
        return await Contained.begin(home, files, request, rules=rules, limits=limits, has_channel=is_session)
    return await Live.begin(
        home,
        files,
        request,
        rules=rules,
        limits=limits,
        overlay=rules.overlay and not is_session,
        ready=take(home, rules),
        has_channel=is_session,
    )


async def _engine(policy: Policy) -> Engine:
    found = await engine.engine(policy.backend)
    if policy.image not in found.proven:
        limits = Limits()
        live = await Contained.begin(
            found, Workspace(), ProgramRequest(argv=("/bin/sh", "-c", ":")), rules=policy, limits=limits
        )
        try:
            kinds = live.bounds()
            await _harmless(live)
        finally:
            await live.finish()
        found.proven[policy.image] = kinds
    return found


async def _supervisor(policy: Policy) -> Supervisor:
    """Returns the supervisor, proven to isolate, and to keep the required guarantees.

    Raises:
        SandboxUnavailable: It does not keep them.
    """
    found = link.running(policy.groups)
    if found is None:
        found = await elsewhere(lambda: link.supervisor(policy.groups))
    if not found.is_proven:
        await _prove(found)
    return found


async def _prove(found: Supervisor) -> None:
    """Runs a harmless program the whole way, so that a machine that cannot isolate is detected first."""
    limits = Limits()
    request = ProgramRequest(argv=("/bin/sh", "-c", ":"))
    live = await Live.begin(found, Workspace(), request, rules=Policy(), limits=limits, overlay=True)
    try:
        await _harmless(live)
    finally:
        live.close()
    found.is_proven = True


async def _harmless(live: Running) -> None:
    live.output.listen()
    status, reason = await live.ended()
    if status or reason:
        said = live.output.take()[1].decode(errors="replace").strip()
        raise SandboxUnavailable(f"a sandbox on trial ended with status {status} {reason}: {said}")


async def guarantees(policy: Policy) -> dict[Promise, bool]:
    """Returns the guarantees here; all False if nothing can be isolated."""
    names: tuple[Promise, ...] = get_args(Promise)
    try:
        found = await home(msgspec.structs.replace(policy, require=()))
    except SandboxUnavailable:
        return dict.fromkeys(names, False)
    return {name: _holds(found, policy, name) for name in names}


def _holds(found: Supervisor | Engine, policy: Policy, name: Promise) -> bool:
    if isinstance(found, Engine):
        return name in {"isolation", "time", "output"} | found.proven[policy.image]
    match name:
        case "memory" | "monotonic":
            return name in found.kinds
        case "cpu":
            return "cpuacct" in found.kinds
        case "processes":
            return "pids" in found.kinds or Path(PRLIMIT).exists()
        case "clock":
            return _libfaketime() is not None
        case _:
            return True


def _libfaketime() -> Path | None:
    return next(iter(sorted(Path("/usr").glob(_LIBFAKETIME))), None)


def faked(now: float) -> dict[str, str]:
    """Variables that let a program's wall clock begin at `now` and run from there."""
    moment = datetime.fromtimestamp(now, UTC).strftime("@%Y-%m-%d %H:%M:%S")
    return {"LD_PRELOAD": str(_libfaketime()), "FAKETIME": moment, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


def _key(policy: Policy) -> str:
    return codec.digest(codec.dumps(policy))


def take(found: Supervisor, policy: Policy) -> Ready | None:
    """Returns a sandbox that waits; None when none does."""
    waiting = found.waiting.get(_key(policy)) if policy.pool and not policy.network else None
    return waiting.pop(0) if waiting else None


def refill(found: object, policy: Policy) -> None:
    """Starts the missing sandboxes of the pool, and an empty one, soon: the caller first uses the one it has."""
    if isinstance(found, Supervisor):
        asyncio.get_running_loop().call_soon(_refill, found, policy)


def _refill(found: Supervisor, policy: Policy) -> None:
    if not found.is_alive:
        return
    if policy.pool and not policy.network:
        waiting = found.waiting.setdefault(_key(policy), [])
        waiting += [Ready(found, policy) for _ in range(policy.pool - len(waiting))]
    found.prepare()  # Last, for each of those takes the empty one.
