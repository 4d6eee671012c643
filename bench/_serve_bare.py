"""Cost of a bare server without any environment.

Arguments: the port, the frames as JSON, and what uvicorn is to have for its event loop and for its connections.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import uvicorn

HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"connection", b"keep-alive"),
    (b"x-accel-buffering", b"no"),
]
FRAMES: list[bytes] = [frame.encode() for frame in json.loads(sys.argv[2])]
START = {"type": "http.response.start", "status": 200, "headers": HEADERS}
MIDDLE = [{"type": "http.response.body", "body": frame, "more_body": True} for frame in FRAMES[:-1]]
LAST = {"type": "http.response.body", "body": FRAMES[-1], "more_body": False}


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Answer any request with the frames."""
    if scope["type"] != "http":
        return
    more = True
    while more:
        more = (await receive()).get("more_body", False)
    await send(START)
    for frame in MIDDLE:
        await send(frame)
    await send(LAST)


if __name__ == "__main__":
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=int(sys.argv[1]),
        loop=sys.argv[3],
        http=sys.argv[4],
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        backlog=4096,
    )
