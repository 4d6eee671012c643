"""Columns of labels: what people, programs and audits say of each episode, as the files say it now."""

from __future__ import annotations

import itertools
import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import msgspec

from quintain import codec
from quintain.record import Key

from .columns import MOST, Lists, Numbers, Texts, clipped
from .index import Index
from .labels import Labels
from .reports import reports
from .reviews import Review, Reviews, by_episode, current, said_by_people

_QUERY = "SELECT task, member, attempt, digest, tools FROM episode WHERE n >= ? AND n < ? ORDER BY n"
_tools = msgspec.json.Decoder(dict[str, msgspec.Raw])


class _Read(msgspec.Struct):
    """Content of the files.

    Attributes:
        values: Texts of each column by their numbers, which stay until a file changes.
    """

    stamp: str
    reviews: dict[Key, list[Review]]
    owners: dict[Key, str]
    programs: dict[str, dict[Key, float] | dict[Key, str]]
    findings: list[dict[str, Any]]
    values: dict[str, list[str]] = {}


class Said:
    """Labels and findings of a run as columns; read again where a file of them has changed.

    Args:
        folder: The run folder.
        reviews: Labels of people.
        labels: Labels of programs.
    """

    def __init__(self, folder: Path, reviews: Reviews, labels: Labels) -> None:
        self._folder, self._reviews, self._labels = folder, reviews, labels
        self._read: _Read | None = None

    def stamp(self) -> str:
        """Returns a text that is another one after a file has changed."""
        paths = [*self._reviews.files(), *self._labels.files(), *reports(self._folder)]
        found = [(os.fsdecode(path), status.st_size, status.st_mtime_ns) for path in paths for status in [path.stat()]]
        return codec.digest(msgspec.json.encode(found))[:16]

    def read(self, stamp: str, findings: Sequence[dict[str, Any]]) -> None:
        """Reads the files anew; `findings` are those of audits about the run's environment."""
        counting = by_episode(current(self._reviews.all()[0]))
        programs = self._labels.columns()
        self._read = _Read(stamp, counting, self._labels.owners(), programs, list(findings))

    def columns(self, index: Index, start: int, end: int) -> dict[str, Lists | Numbers | Texts]:
        """Returns the columns of some rows of an index whose lock is held; `MOST` of fields that programs added."""
        assert self._read is not None
        read = self._read
        is_empty = not (read.reviews or read.owners or read.findings or read.programs)
        rows = [] if is_empty else index.database.execute(_QUERY, (start, end)).fetchall()
        keys = [(row[0], row[1], row[2]) for row in rows]
        people = [said_by_people(read.reviews.get(key, ()), row[3]) for key, row in zip(keys, rows, strict=True)]
        said: dict[str, list[Collection[str]]] = {
            name: [dict.fromkeys(one[name]) for one in people] for name in ("label", "mode", "by")
        }
        said["owner"] = [[read.owners[key]] if key in read.owners else () for key in keys]
        if read.findings:
            said["finding"] = [_concerning(read.findings, row[0], row[4]) for row in rows]
        found: dict[str, Lists | Numbers | Texts] = {}
        for name, lists in said.items():
            found[name] = made = Lists(values=read.values.get(name, ()))
            made.extend(lists or [()] * (end - start))
            read.values[name] = made.values
        for name, values in itertools.islice(read.programs.items(), MOST):
            row = list(map(values.get, keys))
            if any(isinstance(value, str) for value in values.values()):
                found[name] = texts = Texts(values=read.values.get(name, [""]))
                texts.extend([clipped(str(value or "")) for value in row])
                read.values[name] = texts.values
            else:
                found[name] = numbers = Numbers("f4")
                numbers.extend(row)
        return found


def _concerning(findings: Sequence[dict[str, Any]], task: str, tools: str) -> list[str]:
    """Returns the findings about an episode's task, or, without a task, about a tool that it called."""
    used = _tools.decode(tools)
    return [
        one["name"]
        for one in findings
        if (task in one["tasks"] if one["tasks"] else any(tool in used for tool in one["tools"]))
    ]
