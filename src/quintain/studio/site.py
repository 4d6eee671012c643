"""A run as a folder for a static host: the page, answers of the API as files, and episodes that are read by range."""

from __future__ import annotations

import html
import math
import shutil
import struct
from pathlib import Path
from typing import Any

import msgspec

from quintain.errors import UsageError

from .access import POLICY
from .agreement import labels_of_run, of_run
from .folders import Run
from .page import TYPES, built
from .profile import profile_of_runs
from .replays import Replays
from .reports import metrics
from .review_routes import reviews_of, taxonomy_of
from .sent import replayed
from .taxonomy import TaxonomyFile

PLACES = struct.Struct("<4d")
"""Record of `files/places` for an episode: its first byte in `traces.jsonl` and the one behind its last, then those of
its facts in `files/facts`."""


def write_site(run: Run, out: Path, replays: Replays | None = None) -> int:
    """Writes a run with its labels, reviews and findings.

    Args:
        run: The run, with all its episodes in the index.
        out: Folder to write; its `index.html` comes last.
        replays: Replays that find what steps changed; None for a folder without that.

    Returns:
        Number of episodes.

    Raises:
        UsageError: `out` exists, or the front end was not built.
    """
    pages = {name if name == "index.html" else f"static/{name}": built(name) for name in TYPES}
    if out.exists():
        raise UsageError(f"{out} exists; name a folder that does not")
    for folder in ("files", "static"):
        (out / folder).mkdir(parents=True)
    shutil.copy(run.index.traces, out / "traces.jsonl")
    (out / "files" / "columns").write_bytes(run.columns(0, math.inf)[0])
    for name, answer in _answers(run).items():
        (out / "files" / name).write_bytes(msgspec.json.encode(answer))
    episodes = _write_facts(run, out / "files", replays)
    pages["index.html"] = _index(run.name, pages["index.html"].decode())
    for name, content in sorted(pages.items(), reverse=True):
        (out / name).write_bytes(content)
    return episodes


def _answers(run: Run) -> dict[str, Any]:
    """Returns answers of the API to a studio that only reads, without the place of the run on this machine."""
    taxonomy = TaxonomyFile.of_run(run.folder)
    return {
        "runs": [run.summary() | labels_of_run(run) | {"active": False}],
        "run": run.facts() | {"folder": ""},
        "taxonomy": taxonomy_of(taxonomy),
        "reviews": reviews_of(run),
        "profile": profile_of_runs([run]),
        "metrics": metrics(run.folder),
        "agreement": of_run(run, taxonomy.taxonomy()),
        "live": {"version": 1, "now": 0, "playing": []},
    }


def _write_facts(run: Run, folder: Path, replays: Replays | None) -> int:
    """Writes what the studio knows of each episode besides its line, and where both stand."""
    with run.index.lock:
        query = "SELECT n, place, size, task, member, attempt FROM episode ORDER BY n"
        rows = run.index.database.execute(query).fetchall()
    lines = (run.index.line(row[0]) for row in rows)
    changes = (None for _ in rows) if replays is None else replayed(run.facts()["run"], lines, replays)
    with (folder / "facts").open("wb") as facts, (folder / "places").open("wb") as places:
        for (n, place, size, *key), answer in zip(rows, changes, strict=True):
            said = {"seconds": run.index.seconds(n), "labels": run.labels.of((key[0], key[1], key[2]))}
            texts = {name: msgspec.json.encode(value).decode() for name, value in said.items()}
            texts |= {} if answer is None else {"changes": answer.lines().decode()}
            at = facts.tell()
            facts.write(msgspec.json.encode(texts))
            places.write(PLACES.pack(place, place + size, at, facts.tell()))
    return len(rows)


def _index(name: str, page: str) -> bytes:
    policy = POLICY.replace("frame-ancestors 'none'; ", "")  # It counts in a header only.
    said = f'<html data-run="{html.escape(name)}"'
    head = f'<head>\n    <meta http-equiv="Content-Security-Policy" content="{policy}">'
    return page.replace("<html", said).replace("<head>", head).encode()
