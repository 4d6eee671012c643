"""A server that is killed and started again on the same port, with the same journal."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.serve.environments import Gates
from tests.serve.forks import Fork
from tests.serve.operation.raw import ask, result
from tests.serve.serving import ENVIRONMENTS, SECONDS, environment, ready

DYING = """
import os, signal
from pathlib import Path
from quintain.serve.control.routes import ApiRoute
from quintain.serve.journal.database import Journal

wish = Path(os.environ["QUINTAIN_TEST_FOLDER"], "wish")
commit, said = Journal._commit, ApiRoute.response

def at(moment):
    if wish.exists() and wish.read_text() == moment:
        wish.unlink()
        os.kill(os.getpid(), signal.SIGKILL)

def committing(self, *more):
    names = [type(entry).__name__ for entry, _ in (*self._batch, *more)]
    for name in names:
        at(f"before {name}")
    commit(self, *more)
    for name in names:
        at(f"after {name}")

def saying(route, value):
    at("before the answer")
    return said(route, value)

Journal._commit, ApiRoute.response = committing, saying
"""
"""What a server runs first that is to die, as by kill -9, at the moment that the file `wish` names."""


class Mortal:
    """Server that can be killed and started again.

    Args:
        folder: With its journal, its gates and its error stream.
        targets: What it serves.
        options: More arguments of `quintain serve`.
        before: Python that it runs first.
        keeps: Whether it has a journal.
        variables: More of its process environment.
    """

    def __init__(
        self,
        folder: Path,
        *targets: str,
        options: tuple[str, ...] = (),
        before: str = "",
        keeps: bool = True,
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.folder = folder
        self.targets = targets
        self.options = options
        self.gates = Gates(folder)
        self.before = before
        self.keeps = keeps
        self.variables = variables
        self.port = 0
        self.process: Fork | None = None

    def start(self, *targets: str) -> Mortal:
        """Start it, the first time on any free port."""
        if self.process is not None:
            self.process.communicate(timeout=SECONDS)
        names = [one if ":" in one else f"{ENVIRONMENTS}:{one}" for one in targets or self.targets]
        arguments = ["serve", *names, "--port", str(self.port)]
        arguments += [*(("--journal", str(self.folder / "journal")) if self.keeps else ()), *self.options]
        variables = {**environment(self.folder), **self.variables}
        with (self.folder / "stderr").open("a") as errors:
            self.process = Fork(arguments, stderr=errors, env=variables, cwd=self.folder, before=self.before)
        self.port = int(ready(self.process, self.folder).rpartition(":")[2])
        return self

    def kill(self) -> None:
        """End it as the kernel would."""
        assert self.process
        self.process.kill()
        self.process.communicate(timeout=SECONDS)

    def wish(self, moment: str) -> None:
        """Have it die at the next moment of that name, such as "after Acted", where it was started with `DYING`."""
        (self.folder / "wish").write_text(moment)

    @property
    def wishes(self) -> bool:
        """True while that moment has not come yet."""
        return (self.folder / "wish").exists()

    def again(self, *targets: str) -> None:
        self.kill()
        self.start(*targets)

    def ask(self, method: str, path: str, session: str = "", **more: Any) -> tuple[int, dict[str, str], bytes]:
        headers = {**more.pop("headers", {}), **({"X-Session-ID": session} if session else {})}
        return ask(self.port, method, path, headers=headers, **more)

    def create(self, session: str, **body: Any) -> None:
        status, _, said = self.ask("POST", "/create", session, body={"split": "train", "index": 2, **body})
        assert status == 200, said

    def call(self, session: str, tool: str, **arguments: Any) -> dict[str, Any]:
        """A call's document."""
        status, _, said = self.ask("POST", "/call", session, body={"name": tool, "input": arguments})
        assert status == 200, said
        return result(said)

    def trace(self, session: str) -> bytes:
        status, _, said = self.ask("GET", f"/v1/episodes/{session}/trace")
        assert status == 200, said
        return said

    def told(self, session: str) -> dict[str, Any]:
        import json

        status, _, said = self.ask("GET", f"/v1/episodes/{session}")
        assert status == 200, said
        found: dict[str, Any] = json.loads(said)
        return found

    @property
    def said(self) -> str:
        return (self.folder / "stderr").read_text()


@contextlib.contextmanager
def mortal(folder: Path, *targets: str, **more: Any) -> Generator[Mortal]:
    """A server that may be killed, made as a `Mortal`; it is gone afterwards."""
    server = Mortal(folder, *targets, **more)
    try:
        yield server.start()
    finally:
        if server.process is not None:
            server.kill()
