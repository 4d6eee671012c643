"""Tasks and tool arguments of the counter, and the port, for the reference servers."""
# pyright: reportMissingImports=false
# mypy: disable-error-code="import-not-found, misc"

from __future__ import annotations

import sys
from typing import Any

import uvicorn
from pydantic import BaseModel, Field

COUNTS = {"train": 5, "validation": 1, "test": 2}


class Add(BaseModel):
    by: int = Field(default=1, ge=-100, le=100)


class Submit(BaseModel):
    answer: int


def listen(app: Any, port: int) -> None:
    """Serve an application, and say where."""
    config = uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning", access_log=False)
    server = uvicorn.Server(config)
    socket = config.bind_socket()
    socket.listen()  # From here on, whoever comes early waits.
    sys.stdout.write(f"listening on http://127.0.0.1:{socket.getsockname()[1]}\n")
    sys.stdout.flush()
    server.run(sockets=[socket])
