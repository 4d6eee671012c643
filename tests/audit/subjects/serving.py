"""Real server on loopback, in a thread, for an ASGI application."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Generator
from typing import Any

import uvicorn


@contextlib.contextmanager
def serving(app: Any, *, ws: Any = "websockets-sansio") -> Generator[str]:
    """Yields the URL, without a trailing slash."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()  # From here on a client may connect; it waits until it is served.
        config = uvicorn.Config(app, log_level="critical", lifespan="auto", ws=ws, timeout_graceful_shutdown=5)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
