"""A subject as a served OpenEnv package, for `openenv validate`.

Its runtime checks want Docker; the validator takes any provider, so ours serves the package from this process instead.
The plan of a package is one episode: the first task, the oracle's calls in it, then draws for each tool. The reward is
the score as it stands. The older check of a running server (`--url`) is asked as well.
"""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from pathlib import Path
from typing import Any

import uvicorn
import yaml
from openenv.cli._validation import validate_running_environment
from openenv.core.env_server.http_server import create_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State
from openenv.validation import Level, run_validation
from openenv.validation.types import CheckStatus, ProviderCapability

from bench.audit._peer_view import ToolFinding, View, deeds, view
from quintain.audit.kernel.loader import LoadedSubject
from quintain.audit.kernel.probe import Op

MANIFEST = {
    "name": "subject",
    "version": "1.0.0",
    "validation": {
        "reward": {"range": [0.0, 1.0], "floor_margin": 0.1},
        "resources": {"cpu": 1, "memory_mb": 1024, "disk_mb": 1024, "episode_timeout_s": 60},
        "capabilities": {"verifier": {"kind": "reward_channel"}},
        "types": {"tags": ["tools"]},
        "execution": {"kind": "openenv_ws"},
    },
}


class Doing(Action):
    """A call of a tool, or the agent's last words where `name` is empty."""

    name: str = ""
    arguments: dict[str, Any] = {}
    words: str = ""


class Reading(Observation):
    """Observation with the text that the agent reads."""

    text: str


class SubjectServer(Environment[Doing, Reading, State]):
    """A session of a subject."""

    def __init__(self, session: View) -> None:
        super().__init__()
        self._view, self._state = session, State()

    def reset(self, seed: int | None = None, episode_id: str | None = None, task: str = "", **_: Any) -> Reading:
        first = self._view.reset(task or self._view.tasks[0], seed or 0)
        self._state = State(episode_id=episode_id)
        return Reading(text=first)

    def step(self, action: Doing, timeout_s: float | None = None, **_: Any) -> Reading:
        op = Op("call", name=action.name, value=action.arguments) if action.name else Op("answer", value=action.words)
        read = self._view.act(op)
        self._state.step_count += 1
        return Reading(text=read, reward=self._view.score())

    @property
    def state(self) -> State:
        return self._state


class Here:
    """A provider that serves from this process, and the running subject that it provides."""

    name = "in-process"
    capabilities = frozenset({ProviderCapability.IMAGE_BUILD})
    supported_network_modes = frozenset({"public"})

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url

    def build(self, root: Path, execution: Any) -> str:
        return "sha256:" + "0" * 64

    def start(self, spec: Any) -> Here:
        return self

    def inspect(self) -> dict[str, Any]:
        return {}

    def logs(self, max_bytes: int = 65536) -> str:
        return ""

    def stop(self) -> None:
        pass


def validate(opened: LoadedSubject) -> list[ToolFinding]:
    """Returns the findings of `openenv validate` for the package and for the running server."""
    session = view(opened)
    provider = Here(_served(opened))
    report = validate_running_environment(provider.base_url, timeout_s=20)
    findings = [
        _finding_of("--url", one["id"], one.get("details", "")) for one in report["criteria"] if not one["passed"]
    ]
    task = session.tasks[0]
    folder = _package(task, deeds(session, task))
    found = run_validation(folder, max_level=Level.SEMANTIC, provider=provider)
    bad = [one for one in found.results if one.status in (CheckStatus.FAIL, CheckStatus.ERROR)]
    return findings + [_finding_of(task, one.check_id, "; ".join(one.evidence)) for one in bad]


def _finding_of(where: str, check: str, text: str) -> ToolFinding:
    words = re.sub(r"\d+", "", text)
    return ToolFinding(f"{where}: {check}: {words[:200]}", f"{where}: {check}: {text}")


def _package(task: str, ops: list[Op]) -> Path:
    folder = Path(f"package-{time.monotonic_ns()}").absolute()
    (folder / "validation").mkdir(parents=True)
    (folder / "openenv.yaml").write_text(yaml.safe_dump(MANIFEST))
    actions = [{"words": op.value} if op.do == "answer" else {"name": op.name, "arguments": op.value} for op in ops]
    reset = {"episode_id": "episode", "seed": 0, "options": {"task": task}}
    plan = {"plan_schema_version": "1", "reset": reset, "actions": actions}
    (folder / "validation" / "runtime.json").write_text(json.dumps(plan))
    return folder


def _served(opened: LoadedSubject) -> str:
    """The address of a server that goes away with this process."""
    app = create_app(lambda: SubjectServer(view(opened)), Doing, Reading, env_name="subject")
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical"))
    threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True).start()
    while not server.started:
        time.sleep(0.01)
    return f"http://127.0.0.1:{listening.getsockname()[1]}"
