"""An environment of OpenEnv behind OpenEnv's own server; prints its port. Runs in the interpreter that has OpenEnv.

    python bench/audit/_sound_openenv.py template | FOLDER

`template` is the environment that `openenv init` writes. FOLDER is one of `$QUINTAIN_OPENENV_ENVS`. Many sessions are
admitted, because an audit holds several; each has an environment object of its own.
"""

from __future__ import annotations

import importlib
import inspect
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

import uvicorn
from openenv.core.env_server import Action, Environment, Observation, create_app

TEMPLATE = "echo_template"


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


def own(module: ModuleType, base: type[Any]) -> type[Any]:
    """Returns the class of a module that is derived from `base`."""
    classes = [one for one in vars(module).values() if inspect.isclass(one) and one.__module__ == module.__name__]
    return next(one for one in classes if issubclass(one, base))


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = package(sys.argv[1], scratch)
        sys.path.insert(0, str(folder.parent))
        [file] = (folder / "server").glob("*_environment.py")
        environment = own(importlib.import_module(f"{folder.name}.server.{file.stem}"), Environment)
        models = importlib.import_module(f"{folder.name}.models")
    environment.SUPPORTS_CONCURRENT_SESSIONS = True
    action, observation = own(models, Action), own(models, Observation)
    app = create_app(environment, action, observation, env_name=folder.name, max_concurrent_envs=1000)
    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(app, access_log=False, log_level="critical")).run(sockets=[listening])


if __name__ == "__main__":
    main()
