"""Replays for the studio: what each step of an episode changed, found in a child process with a time limit.

Opening a run imports nothing. A replay imports an environment: one that is installed under the name that `run.json`
gives, or the one that the user named with `--env`.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import OrderedDict
from typing import Any

import msgspec

from quintain import plugins
from quintain.errors import UsageError

from .player import Answer

SECONDS = 60.0
"""Most seconds of a replay, the import of its environment included."""
_KEPT = 200
"""Episodes whose changes are kept."""


class Unplayable(UsageError):
    """A replay that is not allowed or not possible; the message says why, and what to do."""


class Replays:
    """Replays of the episodes of all runs, one at a time.

    Args:
        env: Environment to import in place of those that runs name, as `quintain.plugins.environment` takes it.
        seconds: Most seconds of one replay.
    """

    def __init__(self, env: str | None = None, seconds: float = SECONDS) -> None:
        self._env, self._seconds = env, seconds
        self._lock = threading.Lock()
        self._child: tuple[str, subprocess.Popen[bytes]] | None = None
        self._known: OrderedDict[tuple[str, str], Answer] = OrderedDict()

    def changes(self, run: dict[str, Any] | None, line: bytes, digest: str) -> Answer:
        """Returns what each step of an episode changed.

        Args:
            run: Content of `run.json`.
            line: The episode's line of `traces.jsonl`.
            digest: Digest of the line.

        Raises:
            Unplayable: The environment may not be imported, or cannot play the episode.
        """
        spec = self._spec(run or {})
        with self._lock:
            if (found := self._known.get((spec, digest))) is not None:
                return found
            found = self._ask(spec, line)
            self._known[spec, digest] = found
            if len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return found

    def close(self) -> None:
        """Ends the child process."""
        if self._child is not None:
            self._child[1].kill()
            self._child[1].communicate()
            self._child = None

    def _spec(self, run: dict[str, Any]) -> str:
        """Returns the environment to import and its options, as JSON."""
        named, options = run.get("environment"), run.get("options", {})
        if self._env is None:
            if not named:
                raise Unplayable("run.json names no environment; name it: quintain studio RUNS --env ENV")
            if named not in plugins.names("environments"):
                raise Unplayable(
                    f"run.json names {named!r}, which is not an installed environment, and the studio imports no code "
                    f"that a run names. If you trust it: quintain studio RUNS --env {named}"
                )
        return msgspec.json.encode((self._env or named, options if named == (self._env or named) else {})).decode()

    def _started(self, spec: str) -> subprocess.Popen[bytes]:
        """Returns a child process with this environment, the one before if it fits and lives."""
        if self._child is not None and self._child[0] == spec and self._child[1].poll() is None:
            return self._child[1]
        self.close()
        child: subprocess.Popen[bytes] = subprocess.Popen(
            [sys.executable, "-m", "quintain.studio.player", spec],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C ends the studio, which ends the child.
        )
        self._child = spec, child
        return child

    def _ask(self, spec: str, line: bytes) -> Answer:
        child = self._started(spec)
        assert child.stdin is not None
        assert child.stdout is not None
        limit = threading.Timer(self._seconds, child.kill)
        limit.start()
        try:
            child.stdin.write(line)
            child.stdin.flush()
            said = child.stdout.readline()
        except BrokenPipeError:
            said = b""
        finally:
            limit.cancel()
        if not said.endswith(b"\n"):
            self.close()
            raise Unplayable(f"the replay crashed, or took longer than {self._seconds:g} s")
        answer = msgspec.json.decode(said, type=Answer)
        if answer.reason:
            raise Unplayable(answer.reason)
        return answer
