"""What this machine can do: its keepers, what they guarantee, and the sandboxes that are kept ready."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

from quintain import codec
from quintain.resources.workspace import Workspace

from . import link
from .link import Keeper
from .policy import Limits, Policy, Promise, SandboxUnavailable
from .running import PRLIMIT, Live, Ready, Request, elsewhere

_HELP: dict[Promise, str] = {
    "memory": "a control group with memory that this user can write",
    "processes": "a control group with pids that this user can write, or prlimit of util-linux",
    "cpu": "a control group that counts CPU and that this user can write",
    "clock": "libfaketime: apt-get install libfaketime",
    "monotonic": "Linux 5.6 with time namespaces",
}
_LIBFAKETIME = "lib/*/faketime/libfaketime.so.1"


async def keeper(policy: Policy) -> Keeper:
    """The keeper, proven to isolate, and to guarantee what is required.

    Raises:
        SandboxUnavailable: It does not.
    """
    found = link.running(policy.groups)
    if found is None:
        found = await elsewhere(lambda: link.keeper(policy.groups))
    if not found.is_proven:
        await _prove(found)
    missing: list[Promise] = [name for name in policy.require if not _holds(found, name)]
    if missing:
        needs = ", ".join(f"{name} (it needs {_HELP[name]})" for name in missing)
        raise SandboxUnavailable(f"this machine cannot guarantee {needs}")
    return found


async def _prove(found: Keeper) -> None:
    """Run something harmless the whole way, so that a machine that cannot isolate is known before a program is."""
    limits = Limits()
    request = Request(argv=("/bin/sh", "-c", ":"))
    live = await Live.begin(found, Workspace(), request, rules=Policy(), limits=limits, overlay=True)
    try:
        live.output.listen()
        status, reason = await live.ended()
        if status or reason:
            said = live.output.take()[1].decode(errors="replace").strip()
            raise SandboxUnavailable(f"a sandbox on trial ended with status {status} {reason}: {said}")
    finally:
        live.close()
    found.is_proven = True


async def guarantees(policy: Policy) -> dict[Promise, bool]:
    """What holds here; all False where nothing can be isolated."""
    names: tuple[Promise, ...] = get_args(Promise)
    bare = Policy(groups=policy.groups)
    try:
        found = await keeper(bare)
    except SandboxUnavailable:
        return dict.fromkeys(names, False)
    return {name: _holds(found, name) for name in names}


def _holds(found: Keeper, name: Promise) -> bool:
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


def take(found: Keeper, policy: Policy) -> Ready | None:
    """A sandbox that waits; None when none does."""
    waiting = found.waiting.get(_key(policy)) if policy.pool and not policy.network else None
    return waiting.pop(0) if waiting else None


def refill(found: Keeper, policy: Policy) -> None:
    """Start as many as are missing, and have an empty one made: soon, for whoever just had one has an answer to use."""
    asyncio.get_running_loop().call_soon(_refill, found, policy)


def _refill(found: Keeper, policy: Policy) -> None:
    if found.is_alive:
        found.prepare()
    if policy.pool and not policy.network and found.is_alive:
        waiting = found.waiting.setdefault(_key(policy), [])
        waiting += [Ready(found, policy) for _ in range(policy.pool - len(waiting))]
