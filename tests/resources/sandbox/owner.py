"""A process that ends, or is killed, while programs run in its containers. It says what there is of them, and waits."""

from __future__ import annotations

import asyncio
import json
import sys

from quintain.resources.sandbox import Limits, Policy, Sandbox, engine
from quintain.resources.workspace import Workspace


async def main(image: str, seconds: float) -> None:
    files = Workspace({"a": "b"})
    box = Sandbox(Policy(backend="podman", image=image), limits=Limits(seconds=300))
    await box.shell(files, "sleep 300 & (setsid sleep 300 &)")
    stream = box.stream(files, shell="trap '' TERM HUP INT; echo begun; sleep 300 & sleep 300")
    await anext(stream)
    found = await engine.engine("podman")
    info = {"label": found.label, "home": str(found.home), "watchdog": found.watchdog.pid}
    print(json.dumps(info), flush=True)  # noqa: T201  # to the test
    await asyncio.sleep(seconds)
    if not seconds:
        await stream.aclose()


asyncio.run(main(sys.argv[1], float(sys.argv[2])))
