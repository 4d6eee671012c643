"""Run folders: names of new ones, manifests, and the environment of traces."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any, cast

import msgspec

from quintain.environment import Environment
from quintain.errors import Frame, UsageError, short
from quintain.record import Key, RunFolder
from quintain.verifier import Verifier

from . import programs, selection

MANIFEST = "run.json"
ADJUSTABLE = (
    "concurrency", "retries", "model_timeout_s", "tool_timeout_s", "verifier_timeout_s", "episode_timeout_s",
    "gate_rate", "gate_window", "gate_minimum",
)  # fmt: skip
"""Settings that do not change what is played."""


class Manifest(msgspec.Struct, kw_only=True):
    """Description of a run; a run is continued only under an identical one.

    Attributes:
        environment: Spec from the command line; files as absolute paths.
        options: Options that the environment was made with, such as its data folder.
        harness: Program that replaces the harness, with its permissions; empty if the environment's own harness runs.
        verifier: Spec of the verifier that scored, if it is not the environment's own.
        name, fingerprint, tools_digest: Identity of the environment.
        tasks: Task selection from the command line; None for the whole split.
        agent, user, base_url: Models that play.
        config: All limits and settings.
    """

    environment: str
    options: dict[str, str] = {}
    harness: dict[str, Any] = {}
    verifier: str = ""
    name: str
    fingerprint: str
    tools_digest: str
    split: str
    tasks: str | None
    agent: str
    user: str | None
    base_url: str | None
    group: int
    seed: int
    config: dict[str, Any]

    @classmethod
    def of(cls, env: Environment[Any], spec: str, options: dict[str, str], **fields: Any) -> Manifest:
        """Returns the manifest of a run; `fields` left out are those of a server, which plays no split of its own."""
        served: dict[str, Any] = {"split": "", "agent": "", "group": 1, "seed": 0}
        served |= dict.fromkeys(("tasks", "user", "base_url"))
        return cls(
            environment=selection.anchored(spec),
            options=options,
            name=env.name,
            fingerprint=env.fingerprint,
            tools_digest=env.tools_digest,
            config=msgspec.to_builtins(env.config),
            **served | fields,
        )

    @classmethod
    def read(cls, path: Path) -> Manifest | None:
        """Returns the manifest next to some traces; None if there is none.

        Raises:
            UsageError: The manifest cannot be read.
        """
        file = (path if path.is_dir() else path.parent) / MANIFEST
        if not file.is_file():
            return None
        try:
            return msgspec.json.decode(file.read_bytes(), type=cls)
        except (OSError, msgspec.DecodeError) as error:
            raise UsageError(f"cannot read the manifest {file}: {error}") from error


def fresh(environment: str, agent: str) -> Path:
    """Makes the run folder `runs/<environment>-<agent>-<n>`, with the first n that is free."""
    return make_numbered(_stem(environment, agent), "run folder")


def make_numbered(stem: Path, what: str, hint: str = "") -> Path:
    """Makes the folder `<stem>-<n>`, with the first n that is free.

    Raises:
        UsageError: The folder cannot be made; the message ends with `hint`.
    """
    for n in itertools.count(1):
        path = stem.with_name(f"{stem.name}-{n}")
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise UsageError(f"cannot make the {what} {str(path)!r}: {error.strerror}{hint}") from error
        return path
    raise AssertionError("there is always another number")


def latest(environment: str, agent: str) -> Path:
    """Returns the last folder that `fresh` made.

    Raises:
        UsageError: It made none.
    """
    stem = _stem(environment, agent)
    folders = (stem.with_name(f"{stem.name}-{n}") for n in itertools.count(1))
    found = list(itertools.takewhile(Path.exists, folders))
    if not found:
        raise UsageError(f"nothing to resume: {stem}-1 does not exist; name the folder with --out")
    return found[-1]


def opened(path: Path, manifest: Manifest, *, resume: bool = False) -> RunFolder:
    """Opens a run folder for new episodes. A resumed run may change the settings in `ADJUSTABLE`.

    Raises:
        UsageError: It holds another run, or cannot be written to.
        TraceError: A trace in it is damaged.
    """
    if resume and (before := Manifest.read(path)) is not None:
        kept = {name: before.config[name] for name in ADJUSTABLE if name in before.config}
        manifest = msgspec.structs.replace(manifest, config=manifest.config | kept)
    try:
        return RunFolder(path, msgspec.to_builtins(manifest), resume=resume)
    except OSError as error:
        raise UsageError(f"cannot use {str(path)!r} as a run folder: {error.strerror}") from error


def environment_of(path: Path, spec: str | None, verifier: str | None = None) -> Environment[Any]:
    """Returns the environment that made the traces at `path`, with the verifier that scored them.

    Args:
        path: A run folder or a file of traces.
        spec: The environment; None takes the one in the manifest.
        verifier: Another verifier; None takes the one in the manifest, else that of the environment.

    Raises:
        UsageError: No environment is named, or environment or verifier cannot be loaded.
        DefinitionError: The environment is broken.
    """
    from quintain import plugins

    if not path.exists():
        raise UsageError(f"{str(path)!r} does not exist; give a run folder or a file of traces")
    manifest = Manifest.read(path)
    if spec is None and manifest is None:
        raise UsageError(f"no {MANIFEST} next to {str(path)!r}; name the environment with --env")
    options = manifest.options if manifest is not None else {}
    env = plugins.environment(spec or manifest.environment if manifest else str(spec), **options)
    if named := verifier or (manifest.verifier if manifest is not None else ""):
        found = plugins.attribute(named)
        if not isinstance(cast(object, found), Verifier):
            raise UsageError(f"{named!r} must name a Verifier, got {short(found)}")
        env = env.replace(verifier=found)
    return programs.played_by(env, manifest.harness if manifest is not None else {})


def frames_by_episode(path: Path) -> dict[Key, tuple[Frame, ...]]:
    """Returns the lines of the author's code that led to each failure of a run, where they were recorded."""
    file = (path if path.is_dir() else path.parent) / "failures.jsonl"
    lines = file.read_bytes().splitlines() if file.is_file() else []
    rows = [msgspec.json.decode(line, type=_FailureRow) for line in lines]
    return {(row.task, row.member, row.attempt): row.frames for row in rows}


class _FailureRow(msgspec.Struct):
    """Line of failures.jsonl."""

    task: str
    member: int
    attempt: int
    frames: tuple[Frame, ...]


def _stem(environment: str, agent: str) -> Path:
    return Path("runs") / re.sub(r"[^\w.=-]+", "_", f"{environment}-{agent}")
