"""A process that is killed while programs run in its sandboxes. It says what there is of them, and waits."""

from __future__ import annotations

import asyncio
import json
import sys

from quintain.resources.sandbox import Limits, Policy, Sandbox, link
from quintain.resources.workspace import Workspace
from tests.resources.sandbox.house import children


async def main(groups: str) -> None:
    files = Workspace({"a": "b"})
    box = Sandbox(Policy(pool=1, groups=groups), limits=Limits(seconds=300))  # type: ignore[arg-type]  # one of them
    await box.ready()
    await box.shell(files, "sleep 300 & (setsid sleep 300 &)")
    await box.python(files, "x = 1")
    stream = Sandbox(Policy(groups=groups)).stream(  # type: ignore[arg-type]
        files, shell="trap '' TERM HUP INT; echo begun; sleep 300 & sleep 300"
    )
    await anext(stream)
    supervisor = link.supervisor(groups)
    print(  # noqa: T201  # to the test
        json.dumps(
            {
                "supervisor": supervisor.process.pid,
                "below": sorted(children(supervisor.process.pid)),
                "folders": [str(supervisor.home), *supervisor.groups],
            }
        ),
        flush=True,
    )
    await asyncio.sleep(300)


asyncio.run(main(sys.argv[1]))
