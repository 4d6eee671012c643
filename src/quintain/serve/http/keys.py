"""Callers and roles: keys in a file that holds only their digests.

A key is `qn_`, a public id, a dot, and 256 random bits. Lookup uses the id; the secret part is compared in constant
time, also for unknown ids. One round of SHA-256 is enough for 256 random bits; slow hashes are for passwords.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import hmac
import logging
import os
import re
import secrets
import stat
import time
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from quintain.errors import UsageError

Role = Literal["agent", "trainer", "admin"]

LOOK_S = 1.0
"""Seconds between looks at whether the file has changed."""

_log = logging.getLogger(__name__)


class Caller(msgspec.Struct, frozen=True):
    """Owner of a key.

    Attributes:
        name: Of the key; episodes belong to it.
        role: agent plays its own episodes; trainer also reads their records, rewards and worlds; admin everything.
    """

    name: str
    role: Role

    def may(self, owner: Caller) -> bool:
        """True if the caller may use what belongs to an owner."""
        return self.role == "admin" or self.name == owner.name


ANYONE = Caller("anyone", "admin")
"""Caller of all requests to a server without keys, which listens on loopback alone."""

NOBODY = Caller("", "agent")
"""Caller of a path without a key."""


class Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One key, as it stands in the file.

    Attributes:
        name: Whose it is; no two lines have the same.
        number: What a key begins with.
        salt, hash: The SHA-256 of the salt's bytes and the key; in hexadecimal.
    """

    name: str
    role: Role
    number: str
    salt: Annotated[str, msgspec.Meta(pattern="^([0-9a-f]{2})+$")]
    hash: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]

    def fits(self, key: str) -> bool:
        """True if a key belongs to this line; the time of the comparison does not depend on the key."""
        return hmac.compare_digest(_hash(self.salt, key), self.hash)


_NO_LINE = Line("", "agent", "", "00" * 16, "00" * 32)


class Keys:
    """The keys of a file, which is read again when it has changed.

    Raises UsageError if the file is not there, holds something else or no key, or if others may change it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp = _stamp(path)
        self._lines = _guarded(path)
        if not self._lines:
            raise UsageError(f"{path} holds no key, so nobody could come in; {_makes_one(path)}")
        self._looked = time.monotonic()

    def caller(self, key: str) -> Caller | None:
        """Returns the owner of a key; None for an unknown key."""
        if time.monotonic() - self._looked > LOOK_S:
            self.look()
        line = self._lines.get(key.partition(".")[0].removeprefix("qn_"), _NO_LINE)
        return Caller(line.name, line.role) if line.fits(key) and line is not _NO_LINE else None

    def look(self) -> None:
        """Reads the file if it has changed; an unreadable file is logged and changes nothing."""
        self._looked = time.monotonic()
        try:
            stamp = _stamp(self._path)
            if stamp != self._stamp:
                self._lines = _guarded(self._path)
                self._stamp = stamp
        except UsageError as error:
            _log.error("the keys stay as they were: %s", error)


def read(path: Path) -> list[Line]:
    """Returns the lines of a file; raises UsageError if it is not there, or holds something else."""
    try:
        lines = [msgspec.json.decode(text, type=Line) for text in path.read_bytes().splitlines() if text.strip()]
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is no file of keys, such as `quintain keys add` writes: {error}") from error
    for line in lines:
        _checked(line.name)
    for what in ("name", "number"):
        for value, count in Counter(getattr(line, what) for line in lines).items():
            if count > 1:
                raise UsageError(f"{path} has two keys of {what} {value!r}")
    return lines


def add(path: Path, name: str, role: Role) -> str:
    """Makes a key, writes its line, and returns the key, which the file does not hold.

    Raises UsageError if the name is taken or has characters other than letters, digits and ``._-``, or if the file
    cannot be written.
    """
    _checked(name)
    number, salt = secrets.token_hex(6), secrets.token_hex(16)
    key = f"qn_{number}.{secrets.token_urlsafe(32)}"
    with _held(path):
        lines = read(path) if path.exists() else []
        if any(line.name == name for line in lines):
            raise UsageError(f"{path} has a key called {name!r} already; remove it first")
        _write(path, [*lines, Line(name, role, number, salt, _hash(salt, key))])
    return key


def remove(path: Path, name: str) -> None:
    """Removes a key's line, which a running server notices within a second or so; raises UsageError."""
    with _held(path):
        lines = read(path)
        if all(line.name != name for line in lines):
            raise UsageError(f"{path} has no key called {name!r}")
        _write(path, [line for line in lines if line.name != name])


def _checked(name: str) -> None:
    """Raises UsageError if the name of a key has other characters, is too long, or is reserved."""
    if not re.fullmatch(r"[\w.-]{1,64}", name, re.ASCII) or name == ANYONE.name:
        raise UsageError(f"a key's name has 1 to 64 letters, digits or ._-, and is not {ANYONE.name!r}; got {name!r}")


def _hash(salt: str, key: str) -> str:
    return hashlib.sha256(bytes.fromhex(salt) + key.encode()).hexdigest()


def _stamp(path: Path) -> tuple[int, int, int]:
    found = _found(path)
    return found.st_mtime_ns, found.st_size, found.st_ino


def _found(path: Path) -> os.stat_result:
    try:
        return path.stat()
    except OSError as error:
        raise UsageError(f"the keys in {path} cannot be read: {error.strerror}; {_makes_one(path)}") from error


def _makes_one(path: Path) -> str:
    return f"`quintain keys add {path} NAME --role ...` makes one"


def _guarded(path: Path) -> dict[str, Line]:
    """Returns the lines of a file by their ids, if only its owner may write it: each line gives access."""
    lines = {line.number: line for line in read(path)}
    mode = _found(path).st_mode
    if mode & (stat.S_IWGRP | stat.S_IWOTH):  # To read it is no help: its hashes are of keys that nobody can guess.
        raise UsageError(f"others may change {path} ({stat.filemode(mode)}); `chmod go-w {path}` keeps them out")
    return lines


@contextlib.contextmanager
def _held(path: Path) -> Generator[None]:
    """Locks the file against other processes."""
    try:
        lock = os.open(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise UsageError(f"cannot write beside {path}: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _write(path: Path, lines: list[Line]) -> None:
    """Replaces the file as a whole; it is readable only for its owner, who stays the same."""
    new = path.with_name(f".{path.name}.new")
    try:
        new.unlink(missing_ok=True)
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            file.writelines(msgspec.json.encode(line) + b"\n" for line in lines)
            file.flush()
            with contextlib.suppress(FileNotFoundError):  # It is the first one.
                old = path.stat()
                if (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
                    os.fchown(file.fileno(), old.st_uid, old.st_gid)
            os.fsync(file.fileno())
        new.replace(path)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error
