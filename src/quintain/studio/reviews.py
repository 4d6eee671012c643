"""Reviews of a run: verdicts of people, in `RUN/reviews/NAME.jsonl`, one append-only file a reviewer.

Two reviewers never change one file, so git merges their reviews. The last line of a reviewer about an episode counts,
by its time and not by its place in the file, so any order of lines gives the same labels.
"""

from __future__ import annotations

import getpass
import os
import re
import secrets
import shutil
import subprocess
import threading
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from quintain import codec
from quintain.errors import UsageError
from quintain.record import Key

FOLDER = "reviews"
VERSION = 1
"""Version of a line."""

Owner = Literal["policy", "env", "verifier", "task", "simulator", "infra", "trainer", "unknown"]
OWNERS: tuple[Owner, ...] = ("policy", "env", "verifier", "task", "simulator", "infra", "trainer", "unknown")
"""Parties that can own a fault; the same as triage's."""

Hidden = Literal["triage", "reviewers", "reward"]
"""Facts that a blind review hides: labels of programs, reviews of others, rewards with their reasons."""

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_Index = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Episode that a review is about; `digest` is that of its trace."""

    task: str
    member: _Index = 0
    attempt: _Index = 0
    digest: str

    @property
    def key(self) -> Key:
        return self.task, self.member, self.attempt


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Turn, and step of the turn; no step for the whole turn."""

    turn: _Index
    step: _Index | None = None


class Mark(msgspec.Struct, frozen=True, kw_only=True, rename={"from_": "from"}):
    """Place in a text of a turn.

    Attributes:
        field: Label of the text on the page: "says", "thinks", "calls", "sees", or the role of a message that the turn
            added; empty for the whole turn.
        step: Number among the texts with this label.
        from_, to: First character, and the one behind the last, both without blanks, because JSON may be laid out.
        quote: The text, at most its beginning.
    """

    turn: _Index
    field: str = ""
    step: _Index = 0
    from_: _Index = 0
    to: _Index = 0
    quote: Annotated[str, msgspec.Meta(max_length=200)] = ""


Kind = Literal["verdict", "note", "mark", "inherited", "decided", "removed"]


class Review(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of a file of reviews.

    Attributes:
        id: Identity of the line.
        at: Time of the review, UTC.
        kind: "verdict" and "note" of an episode that was read, "mark" of a text in it, "inherited" for one of the same
            shape, "decided" where reviewers disagreed, "removed" for a line that no longer counts.
        owner: Party at fault; None for a note.
        modes: Modes of the taxonomy, the most important first.
        first: First wrong turn.
        mark: Place of a mark.
        taxonomy: Revision of the taxonomy.
        sample: Sample that the episode was reviewed in.
        blind: Facts that were hidden from the reviewer.
        seconds: Time that the review took.
        of: Identities of the lines that this one removes, inherits from or decides between.
    """

    version: int
    id: str
    at: Annotated[datetime, msgspec.Meta(tz=True)]
    reviewer: str
    kind: Kind
    target: Target
    owner: Owner | None = None
    modes: tuple[str, ...] = ()
    first: Place | None = None
    mark: Mark | None = None
    sure: Literal["sure", "likely", "unsure"] | None = None
    note: str = ""
    taxonomy: int = 0
    sample: str = ""
    blind: tuple[Hidden, ...] = ()
    seconds: float | None = None
    of: tuple[str, ...] = ()


_decoder = msgspec.json.Decoder(Review)


class Reviews:
    """Reviews in a run folder. Threads may share them; what others write there is seen at the next reading."""

    def __init__(self, run: Path) -> None:
        self.folder = run / FOLDER
        self._lock = threading.Lock()
        self._read: dict[Path, tuple[tuple[int, int], list[Review], list[str]]] = {}

    def files(self) -> list[Path]:
        return sorted(self.folder.glob("*.jsonl"))

    def all(self) -> tuple[list[Review], list[str]]:
        """Returns the lines of all reviewers, and a warning for each line that cannot be read."""
        with self._lock:
            read = [self._lines(path) for path in self.files()]
        return [one for lines, _ in read for one in lines], [one for _, warnings in read for one in warnings]

    def _lines(self, path: Path) -> tuple[list[Review], list[str]]:
        status = path.stat()
        stamp = (status.st_size, status.st_mtime_ns)
        known = self._read.get(path)
        if known is None or known[0] != stamp:
            lines, warnings = list[Review](), list[str]()
            for number, line in enumerate(path.read_bytes().splitlines(), 1):
                try:
                    lines.append(_checked(line, path.stem))
                except (msgspec.DecodeError, ValueError, RecursionError) as error:
                    warnings.append(f"{FOLDER}/{path.name}, line {number}, is not a review: {error}")
            known = self._read[path] = (stamp, lines, warnings)
        return known[1], known[2]

    def add(self, reviewer: str, lines: Sequence[dict[str, Any]]) -> list[Review]:
        """Appends lines to a reviewer's file and syncs it; `version`, `id`, `at` and `reviewer` are added here.

        Raises:
            UsageError: A line is not a review, or the file cannot be written.
        """
        path = self.folder / f"{reviewer}.jsonl"
        with self._lock:
            # A clock that was set back must not put a review before the one it replaces.
            known = self._lines(path)[0] if path.is_file() else []
            last = max((one.at for one in known), default=datetime.min.replace(tzinfo=UTC))
            at = max(datetime.now(UTC), last + timedelta(microseconds=1))
            facts = {"version": VERSION, "at": at, "reviewer": reviewer}
            try:
                made = [msgspec.convert(line | facts | {"id": secrets.token_hex(8)}, Review) for line in lines]
            except msgspec.ValidationError as error:
                raise UsageError(f"this is not a review: {error}") from error
            try:
                _append(path, b"".join(codec.json(one) + b"\n" for one in made))
            except OSError as error:
                raise UsageError(f"cannot write {str(path)!r}: {error.strerror}") from error
        return made


def _checked(line: bytes, name: str) -> Review:
    review = _decoder.decode(line)
    if review.version != VERSION:
        raise ValueError(f"version {review.version}, this program reads version {VERSION}")
    if review.reviewer != name:
        raise ValueError(f"it is by {review.reviewer!r}, the file is of {name!r}")
    return review


def _append(path: Path, text: bytes) -> None:
    path.parent.mkdir(exist_ok=True)
    with path.open("ab+") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":  # A crash, or an editor, left a line without its end.
                text = b"\n" + text
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def current(reviews: Iterable[Review]) -> list[Review]:
    """Returns the lines that count: of each reviewer the last about each episode and all marks, and the last decision.

    Args:
        reviews: Lines in any order.
    """
    reviews = list(reviews)
    removed = {(one.reviewer, name) for one in reviews if one.kind == "removed" for name in one.of}
    last: dict[tuple[str, str, Key], Review] = {}
    for one in reviews:
        if one.kind == "removed" or (one.reviewer, one.id) in removed:
            continue
        own = one.id if one.kind == "mark" else ""
        place = ("" if one.kind == "decided" else one.reviewer, own, one.target.key)
        if place not in last or _order(last[place]) < _order(one):
            last[place] = one
    return [one for _, one in sorted(last.items())]


def by_episode(counting: Iterable[Review]) -> dict[Key, list[Review]]:
    """Returns the labels of each episode: a mark is none, and a decision outweighs others."""
    found: dict[Key, list[Review]] = {}
    for one in counting:
        if one.kind != "mark":
            found.setdefault(one.target.key, []).append(one)
    return {key: [one for one in given if one.kind == "decided"] or given for key, given in found.items()}


_NOTHING: dict[str, list[str]] = {"label": [], "mode": [], "by": []}


def said_by_people(given: Sequence[Review], digest: str) -> dict[str, list[str]]:
    """Returns labels, modes and reviewers of an episode.

    Args:
        given: Its labels.
        digest: That of its trace; a label that was given to another trace says so, and has no modes.
    """
    if not given:
        return _NOTHING
    fresh = [one for one in given if one.target.digest == digest]
    return {
        "label": [_label(one, is_stale=one not in fresh) for one in given],
        "mode": [mode for one in fresh for mode in one.modes],
        "by": [one.reviewer for one in given],
    }


def _label(review: Review, *, is_stale: bool) -> str:
    suffix = " (stale)" if is_stale else " (inherited)" if review.kind == "inherited" else ""
    return f"{review.owner or 'note'}{suffix}"


def _order(review: Review) -> tuple[datetime, str, bytes]:
    """Returns the place of a line in time; lines of one moment and id, as of two reviewers, are ordered by content."""
    return review.at, review.id, msgspec.json.encode(review)


def reviewer_name(given: str | None) -> str:
    """Returns a reviewer's name in the form of a file's name: the given one, else git's, else the login.

    Raises:
        UsageError: The given name has no letter that such a name can have.
    """
    for name in (given,) if given is not None else (_git_name(), _login(), "reviewer"):
        if _NAME.fullmatch(made := re.sub(r"[^a-z0-9._]+", "-", name.lower()).strip("-._")[:64]):
            return made
    raise UsageError(f"--reviewer takes a name with letters of a to z or digits, got {given!r}")


def _git_name() -> str:
    git = shutil.which("git")
    if git is None:
        return ""
    return subprocess.run([git, "config", "user.name"], capture_output=True, text=True, check=False).stdout


def _login() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # A process of a container may have no account.
        return ""
