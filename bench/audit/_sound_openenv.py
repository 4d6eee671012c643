"""An environment of OpenEnv behind OpenEnv's own server; prints its port. Runs in the interpreter that has OpenEnv.

    python bench/audit/_sound_openenv.py template | FOLDER

`template` is what `openenv init` writes. FOLDER is a folder of `$QUINTAIN_OPENENV_ENVS`. An audit holds several
sessions, each with an environment object of its own; the environments admit one by default.
"""

from __future__ import annotations

import importlib
import inspect
import os
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import uvicorn
from openenv.core import env_server
from openenv.core.env_server import http_server

TEMPLATE = "echo_env"
SESSIONS = 1000
ORIGINAL = http_server.create_app


def create_app(env: Any, *further: Any, **options: Any) -> Any:
    """Makes an app as OpenEnv does, for many sessions."""
    if inspect.isclass(env):
        env.SUPPORTS_CONCURRENT_SESSIONS = True
    return ORIGINAL(env, *further, **options | {"max_concurrent_envs": SESSIONS})


def package(name: str, scratch: str) -> Path:
    """Returns the folder of an environment; the template is written to `scratch`."""
    if name == "template":
        command = [sys.executable, "-m", "openenv.cli", "init", TEMPLATE, "--output-dir", scratch]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return Path(scratch, TEMPLATE)
    envs = os.environ.get("QUINTAIN_OPENENV_ENVS")
    if not envs:
        sys.exit("$QUINTAIN_OPENENV_ENVS must name the folder envs of a checkout of OpenEnv: no registry has it")
    return Path(envs, name).absolute()


def end_with_standard_input() -> None:
    """Ends this process when the one that started it is gone, even if that was killed."""
    sys.stdin.read()
    os._exit(0)


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = package(sys.argv[1], scratch)
        sys.path.insert(0, str(folder.parent))
        env_server.create_app = http_server.create_app = create_app
        app = importlib.import_module(f"{folder.name}.server.app").app
        threading.Thread(target=end_with_standard_input, daemon=True).start()
        listening = socket.create_server(("127.0.0.1", 0))
        print(listening.getsockname()[1], flush=True)
        uvicorn.Server(uvicorn.Config(app, access_log=False, log_level="critical")).run(sockets=[listening])


if __name__ == "__main__":
    main()
