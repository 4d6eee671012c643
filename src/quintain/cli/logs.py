"""Logs of other tools as run folders: verifiers, Inspect, lists of OpenAI messages, and what plugins read.

A plugin is an entry point in the group `quintain.readers`: a function from the path of a log to its episodes as Traces,
or to None if the log has a form that it does not read. Plugins are asked first, in the order of their names.
"""

from __future__ import annotations

import json
import shutil
import struct
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import msgspec

from quintain import codec, plugins
from quintain.config import Config
from quintain.errors import Component, Failure, UsageError
from quintain.plugins import package
from quintain.trace import End, Level, Message, Reply, Reward, Step, ToolCall, Trace, Turn, Usage

if TYPE_CHECKING:
    from quintain.audit.triage import Reading
    from quintain.audit.triage.episode_log import EpisodeLog

SUFFIX = ".quintain"
"""End of the name of the run folder, which lies beside the log."""

_ZSTD = 93
"""Number of the compression Zstandard in ZIP archives."""
_FORMS = {"messages": "OpenAI messages", "rollout": "verifiers", "inspect": "Inspect", "quintain": ""}
_PARTS: dict[str, Component] = {"T": "T", "H": "H", "V": "V", "S": "S", "C": "C", "model": "model"}


def is_run(path: Path) -> bool:
    """True for a run folder, and for a folder of run folders."""
    return (path / "traces.jsonl").is_file() or any(path.glob("*/traces.jsonl"))


def run_of(log: Path) -> tuple[Path, str]:
    """Returns the run folder of a log, and a sentence on what was read; a changed log is read again.

    Raises:
        UsageError: The log holds no episode that can be read, or the folder cannot be written.
    """
    folder = log.with_name(log.name + SUFFIX)
    stamp = _stamp(log)
    known = _manifest(folder)
    if known.get("stamp") == stamp:
        return folder, str(known.get("read"))
    traces, lost = _of_plugin(log) or _of_reading(_read(log), log)
    words = f"{len(traces):,} episodes of {log} in {folder}{lost}"
    manifest = {"name": log.stem, "source": str(log.absolute()), "read": words, "stamp": stamp}
    try:
        folder.mkdir(exist_ok=True)
        with (folder / "traces.jsonl").open("wb") as file:
            file.writelines(trace.to_json() + b"\n" for trace in _numbered(traces))
        (folder / "run.json").write_bytes(codec.json(manifest) + b"\n")
    except OSError as error:
        raise UsageError(f"cannot write the run of {str(log)!r} to {str(folder)!r}: {error.strerror}") from error
    return folder, words


def _stamp(log: Path) -> list[list[Any]]:
    files = [log] if log.is_file() else sorted(path for path in log.rglob("*") if path.is_file())
    return [[str(path.relative_to(log.parent)), path.stat().st_size, path.stat().st_mtime_ns] for path in files]


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        return msgspec.json.decode((folder / "run.json").read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.DecodeError):  # The run is made anew.
        return {}


def _read(log: Path) -> Reading:
    from quintain.audit.triage import read

    files = [log] if log.is_file() else sorted(log.rglob("*.eval"))
    archives = [path for path in files if path.suffix == ".eval"]
    if not archives:
        return read(log)
    scratch = Path(tempfile.mkdtemp(prefix="quintain-"))
    try:
        for n, path in enumerate(archives):
            (scratch / f"{n:06}-{path.stem}.json").write_bytes(codec.json({"samples": list(_samples(path))}))
        return read(scratch)
    finally:
        shutil.rmtree(scratch)


def _samples(archive: Path) -> Iterator[Any]:
    """Yields the samples of Inspect's binary log, which is a ZIP archive.

    Raises:
        UsageError: The archive cannot be read.
    """
    try:
        with zipfile.ZipFile(archive) as members:
            for name in sorted(members.namelist()):
                if name.startswith("samples/") and name.endswith(".json"):
                    yield json.loads(_content(members, members.getinfo(name)))
    except Exception as error:  # Decompressors have errors of their own.
        advice = "pip install 'quintain[studio]', or convert it: inspect log convert --to json --output-dir OUT LOG"
        raise UsageError(f"cannot read {str(archive)!r}: {error}; {advice}") from error


def _content(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """Returns a file of the archive; before Python 3.14, `zipfile` lacks the compression that Inspect uses."""
    if member.compress_type != _ZSTD or sys.version_info >= (3, 14) or find_spec("zstandard") is None:
        return archive.read(member)
    file = archive.fp
    assert file is not None
    file.seek(member.header_offset + 26)  # Where the local header says how long its name and its extra field are.
    file.seek(sum(struct.unpack("<HH", file.read(4))), 1)
    unpacked: bytes = (
        package("zstandard", extra="studio")
        .ZstdDecompressor()
        .decompressobj()
        .decompress(file.read(member.compress_size))
    )
    return unpacked


def _of_plugin(log: Path) -> tuple[list[Trace], str] | None:
    """Returns the episodes that the first plugin finds that knows the form of the log; None if none does.

    Raises:
        UsageError: A plugin does not load, fails, or finds no episode.
    """
    for name in plugins.names("readers"):
        reader = plugins.load("readers", name)
        try:
            found = reader(log)
            traces = None if found is None else list[Trace](found)
        except Exception as error:
            raise UsageError(f"the reader {name!r} fails on {str(log)!r}: {type(error).__name__}: {error}") from error
        if traces == []:
            raise UsageError(f"the reader {name!r} finds no episode in {str(log)!r}")
        if traces:
            return traces, ""
    return None


def _of_reading(reading: Reading, log: Path) -> tuple[list[Trace], str]:
    """Returns the episodes of a log, and what to say of those that cannot be read.

    Raises:
        UsageError: There are none.
    """
    if not reading.played:
        reasons = "; ".join(f"{one.place}: {one.reason}" for one in reading.unreadable[:3])
        raise UsageError(f"no episode of verifiers, Inspect or OpenAI messages in {str(log)!r}. {reasons}")
    lost = [one for one in reading.unreadable if one.episode]
    words = f"; {len(lost):,} cannot be read, the first in {lost[0].place}: {lost[0].reason}" if lost else ""
    return [one.trace or _trace(one, log.stem) for one in reading.played], words


def _numbered(traces: Iterable[Trace]) -> Iterator[Trace]:
    """Yields the traces, each with a member of its own: rollouts of a row have no number in most logs."""
    seen = set[tuple[str, int, int]]()
    for trace in traces:
        while (trace.task, trace.member, trace.attempt) in seen:
            trace.member += 1
        seen.add((trace.task, trace.member, trace.attempt))
        yield trace


def _trace(log: EpisodeLog, name: str) -> Trace:
    """Returns an episode as a trace. Its log may lack ids, roles of prompts and world; what it lacks is left empty."""
    rewards = [
        Reward(name=criterion, level=Level.TRAJECTORY, raw=value, value=value)
        for criterion, value in log.components.items()
    ]
    trace = Trace(
        environment=name,
        fingerprint="",
        tools_digest="",
        task=log.task or f"episode {log.index}",
        task_digest="",
        tags={"form": _FORMS[log.form]},
        seed=0,
        member=log.member,
        config=Config(),
        turns=[_turn(log, n) for n in range(len(log.said))],
        end=End(log.end) if log.end else End.TERMINATED,
        reason=log.reason,
        criteria=tuple(log.components),
        rewards=rewards,
        score=log.reward,
    )
    if log.broken is not None:
        part = _PARTS.get(log.broken.part, "H")
        kind = {"type": log.broken.type, "message": log.broken.message[:2000], "turn": log.broken.turn}
        trace.end, trace.score = None, None
        trace.fail(Failure(component=part, kind="agent_run_error", stage="agent", **cast(Any, kind)))
    return trace


def _turn(log: EpisodeLog, n: int) -> Turn:
    said = log.said[n]
    role: Literal["system", "user"] = "system" if n == 0 and len(said.heard) > 1 else "user"
    added = tuple(Message(role if place == 0 else "user", text) for place, text in enumerate(said.heard))
    asked = [ToolCall(f"{n}/{call.step}", call.name, call.raw) for call in log.calls_of(said.turn)]
    answered = [one for one in zip(asked, log.calls_of(said.turn), strict=True) if one[1].answered]
    return Turn(
        index=n,
        role=said.role,
        thread=int(said.role != "agent"),
        added=added,
        reply=Reply(
            Message("assistant", said.text, calls=tuple(asked), reasoning=said.reasoning),
            usage=Usage(0, said.counted or 0),
            finish_reason=said.finish,
        ),
        steps=tuple(Step(call, one.observation, is_error=one.is_error) for call, one in answered),
    )
