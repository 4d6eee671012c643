"""Runs below the folders that were named, each with its index."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from quintain.errors import UsageError
from quintain.record import Key

from .columns import Columns
from .description import Description
from .index import Index
from .labels import Labels
from .live import Live
from .reports import UNREADABLE, findings
from .reviews import Reviews
from .said import Said

_ACTIVE_S = 20
"""A run is being written if its traces are at most so old."""


class Run:
    """Run of a folder, whose index and columns are opened at their first use."""

    def __init__(self, name: str, folder: Path, cache: Path, *, labels: Sequence[Path] = ()) -> None:
        self.name, self.folder = _text(name), folder
        self._file = cache / f"{hashlib.sha256(os.fsencode(folder)).hexdigest()[:32]}.sqlite"
        self._lock = threading.Lock()
        self._index: Index | None = None
        self._columns = Columns()
        self.reviews, self.labels = Reviews(folder), Labels(folder, labels)
        self._said, self._stamp = Said(folder, self.reviews, self.labels), ""
        self.live = Live(folder)

    @property
    def index(self) -> Index:
        with self._lock:
            if self._index is None:
                self._index = Index(self.folder, self._file)
            return self._index

    def columns(self, start: int, seconds: float, known: str | None = None) -> tuple[bytes, bool]:
        """Returns the message with the episodes from `start` on, and whether it holds anything new.

        Args:
            start: Number of the first episode.
            seconds: About the most seconds that the traces are read for; the next request continues.
            known: Head's `labels` of the message before. Where files of labels have changed since, the message is new
                and has the columns of labels from the first episode on.
        """
        index = self.index
        with index.lock:
            done = index.update(seconds) and self._columns.update(index, seconds)
            self._columns.update(index, 0)
            stamp, rows = self._said.stamp(), self._columns.rows
            if stamp != self._stamp:
                self._said.read(stamp, self.facts()["findings"])
                self._stamp = stamp
            since = start if known in (None, stamp) else 0
            facts = index.progress() | {"done": done, "labels": stamp}
            message = self._columns.pack(start, self._said.columns(index, since, rows), since=since, **facts)
            return message, not done or rows != start or known not in (None, stamp)

    def rows(self, tasks: Iterable[str]) -> dict[Key, tuple[int, str]]:
        """Returns row and digest of each episode of some tasks."""
        query = (
            "SELECT task, member, attempt, n, digest FROM episode "
            "WHERE task IN (SELECT value FROM json_each(?)) ORDER BY n"
        )
        with self.index.lock:
            found = self.index.database.execute(query, (msgspec.json.encode(list(tasks)).decode(),))
            return {(task, member, attempt): (n, digest) for task, member, attempt, n, digest in found}

    def facts(self) -> dict[str, Any]:
        """Returns what the folder's files say of the run; a file that cannot be read is a warning."""
        said: dict[str, Any] = {"name": self.name, "folder": _text(str(self.folder)), "warnings": []}
        for key, read in (("run", _manifest), ("environment", Description.read)):
            try:
                said[key] = read(self.folder)
            except UNREADABLE as error:
                said[key] = None
                said["warnings"].append(f"cannot read {key}.json: {error}")
        described: Description | None = said["environment"]
        manifest: dict[str, Any] = said["run"] or {}
        known = [manifest.get("fingerprint"), None if described is None else described.fingerprint]
        found, warnings = findings(self.folder, [one for one in known if one])
        said["warnings"] += warnings
        return said | {"findings": found or [], "audited": found is not None}

    def summary(self) -> dict[str, Any]:
        """Returns the row of the run in the list of runs, from what is indexed by now."""
        index = self.index
        query = "SELECT count(*), count(score), avg(score), total(score), min(score), max(score) FROM episode"
        with index.lock:
            try:
                done = index.update(0)
            except UsageError:  # On a full disk, what was indexed before is shown; the table says why it is not all.
                done = False
            episodes, scored, mean, total, least, most = index.database.execute(query).fetchone()
            progress = index.progress()
        facts, failed = self.facts(), episodes - scored
        run: dict[str, Any] = facts["run"] or {}
        said: dict[str, Any] = {name: run.get(name) for name in ("name", "agent", "split")}
        active = time.time() - index.traces.stat().st_mtime < _ACTIVE_S
        # Each episode without a score counts as the lowest, and as the highest one.
        ends = (min(0.0, least or 0.0), max(1.0, most or 0.0))
        said["interval"] = [(total + failed * end) / episodes for end in ends] if episodes else None
        proven = sum(one["confidence"] == "proven" for one in facts["findings"])
        said["proven"] = proven if facts["audited"] else None
        counts = {"episodes": episodes, "failed": failed, "mean": mean, "active": active, "done": done}
        return {"name": self.name, "environment": said.pop("name")} | said | counts | progress

    def close(self) -> None:
        if self._index is not None:
            self._index.close()


class Runs:
    """Runs of the named folders; new ones are found while the studio is open.

    Args:
        places: Run folders, and folders of run folders.
        cache: Folder of the indexes.
        labels: Files with labels of the run, if it is only one.

    Attributes:
        home: The first folder, where the taxonomy is.

    Raises:
        UsageError: A folder does not exist, no run is there, or labels were given for several runs.
    """

    def __init__(self, places: Iterable[Path], cache: Path, labels: Sequence[Path] = ()) -> None:
        self._places = [place.absolute() for place in places]
        self.home = self._places[0]
        self._cache, self._labels = cache, labels
        self._runs: dict[str, Run] = {}
        self._known: set[Path] = set()
        for place in self._places:
            if not place.is_dir():
                raise UsageError(f"{str(place)!r} is not a folder; give run folders, or folders of run folders")
        if not self.all():
            raise UsageError(f"no run folder (one with traces.jsonl) in {', '.join(map(str, self._places))}")
        if labels and len(self._runs) > 1:
            raise UsageError(f"labels are of one run, got {len(self._runs)} runs: {', '.join(self._runs)}")

    def all(self) -> dict[str, Run]:
        """Returns the runs by name; of several folders with one name the later ones have a number."""
        for folder in self._found():
            if folder not in self._known:
                self._known.add(folder)
                name, n = _text(folder.name), 2
                while name in self._runs:
                    name, n = f"{_text(folder.name)}~{n}", n + 1
                self._runs[name] = Run(name, folder, self._cache, labels=self._labels)
        return {name: run for name, run in self._runs.items() if (run.folder / "traces.jsonl").is_file()}

    def __getitem__(self, name: str) -> Run:
        """Returns a run.

        Raises:
            UsageError: No run has that name, or it was deleted.
        """
        run = self._runs.get(name) or self.all().get(name)
        if run is None or not (run.folder / "traces.jsonl").is_file():
            raise UsageError(f"the studio has no run {name!r}; it has {', '.join(sorted(self.all()))}")
        return run

    def close(self) -> None:
        for run in self._runs.values():
            run.close()

    def _found(self) -> Iterator[Path]:
        for place in self._places:
            if (place / "traces.jsonl").is_file():
                yield place
            else:
                yield from sorted(path.parent for path in place.glob("*/traces.jsonl"))


def _text(name: str) -> str:
    """Returns the name of a file as a text that JSON can hold: bytes that are no UTF-8 become question marks."""
    return name.encode("utf-8", "replace").decode()


def _manifest(folder: Path) -> dict[str, Any] | None:
    path = folder / "run.json"
    return msgspec.json.decode(path.read_bytes(), type=dict[str, Any]) if path.is_file() else None
