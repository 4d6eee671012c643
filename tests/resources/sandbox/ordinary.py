"""Results of an ordinary user, printed as JSON for the test that started this as one."""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

from quintain.resources.sandbox import Limits, Policy, Sandbox, SandboxUnavailable, link, settled
from quintain.resources.workspace import Workspace

SHOWS = """
import os
print(os.getuid(), sorted(os.listdir(".")))
open("made", "w").close()
os.remove("old")
for path in ("/etc/shadow", "/home", "/root", "/proc/sys/kernel/core_pattern"):
    try:
        open(path, "r+" if "sys" in path else "r")
    except OSError as error:
        print(type(error).__name__)
"""


async def main() -> dict[str, Any]:
    try:
        await Sandbox().ready()
    except SandboxUnavailable as error:
        return {"unavailable": str(error)}
    said: dict[str, Any] = {"uid": os.getuid(), "is_nested": link.supervisor().is_nested, "modes": []}
    for policy in (Policy(), Policy(overlay=False), Policy(pool=1)):
        box, files = Sandbox(policy, limits=Limits(seconds=20)), Workspace({"old": "old\n", "kept": "kept\n"})
        done = await box.run(files, python=SHOWS)
        await box.shell(files, "x=1")
        shell = (await box.shell(files, "echo $x; cat kept")).out
        forks = await box.run(files, shell="for i in $(seq 200); do sleep 9 & done", limits=Limits(processes=20))
        changes = [one.path for one in done.changes]
        said["modes"].append([done.out, done.err, changes, shell, "fork" in forks.err.lower()])
        box.close()
    await settled()
    return said


print(json.dumps(asyncio.run(main())))  # noqa: T201  # to the test
