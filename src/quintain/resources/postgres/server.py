"""A PostgreSQL server: connections to it, and the ownership of its databases.

    quintain_<home>_t_<digest>        a template: seeded, complete, and never connected to again
    quintain_<home>_w_<owner>_<n>     a world, of one process
    quintain_<home>_s_<name>          a shared world, which outlives the processes that use it

`home` is the database that the url names; a process keeps one connection to it, and with that an advisory lock on its
number. A world whose owner's number is not locked belongs to a dead process; the next process that starts drops it. A
template gets its name when it is complete, so a half-made one is never found.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import secrets
import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Generator, Sequence
from typing import Any, NoReturn, Protocol

import psycopg
from psycopg import conninfo
from psycopg import errors as pg
from psycopg.abc import AdaptContext
from psycopg.adapt import AdaptersMap

from quintain import codec
from quintain.errors import DefinitionError, EpisodeError

from .values import ADAPTERS

_OLDEST = 150_000
"""PostgreSQL 15: the first with STRATEGY, and with what keeps an asker apart."""
_SECONDS = 10
"""Until a server that does not answer counts as gone."""
_BUILDING = 120
"""Seconds that a process waits for another one to build a template before it builds its own."""
_LOOKS = 2000
"""At a connection that is about to go."""
_WARM = 24
"""Connections that wait open; a world beyond pays 3 ms for the next one."""
_OWNERS, _BUILDERS = 0x51_0001, 0x51_0002
"""Classes of advisory locks."""
_SETTINGS = {
    "search_path": "main,public,quintain,pg_catalog",
    "timezone": "UTC",
    "datestyle": "ISO",
    "intervalstyle": "iso_8601",
    "lc_messages": "C",
    "jit": "off",
    "max_parallel_workers_per_gather": "0",
    "synchronize_seqscans": "off",
    "synchronous_commit": "off",
    "default_transaction_read_only": "on",
    "idle_session_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "lock_timeout": f"{_SECONDS}s",
    "quintain.now": "",
    "quintain.key": "",
    "quintain.counter": "0",
    "quintain.who": "",
}
"""Settings that make all connections answer alike, and bound the wait for a lock."""


class ServerError(EpisodeError):
    """Error for a server that cannot be reached, or went away. In an episode, component S is to blame."""

    def __init__(self, url: str, error: object, *, kind: str = "transport_peer_drop") -> None:
        lost = kind == "transport_peer_drop"
        said = " ".join(str(error).split())
        advice = (
            "worlds that were not shared are gone with it; begin the episode again"
            if lost
            else "is it running, and may this user connect? Try `psql` with the same url"
        )
        words = "the connection is lost" if lost else "cannot connect"
        super().__init__(f"PostgreSQL at {url}: {words} ({said}). {advice}", component="S", kind=kind)


class Closing(Protocol):
    """Owner of a connection of this process."""

    def close(self) -> None: ...


class Resting(Protocol):
    """Owner of a connection that may be closed while it is idle."""

    def rest(self) -> bool: ...


class HomeConnection:
    """The connection with which a server's databases are managed."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection

    def execute(self, text: str, values: Sequence[Any] | None = None) -> psycopg.Cursor[Any]:
        return self.connection.execute(text.encode(), values)


class ValueAdapters(AdaptContext):
    """Source from which psycopg copies the conversion of values."""

    @property
    def adapters(self) -> AdaptersMap:
        return ADAPTERS

    @property
    def connection(self) -> None:
        return None


_servers: dict[tuple[str, int], Server] = {}
_lock = threading.RLock()


def reach(url: str) -> Server:
    """Returns the server of this url, connected.

    Raises:
        ServerError: The server does not answer.
        DefinitionError: The server is too old, or its user is not a superuser.
    """
    with _lock:
        key = (url, os.getpid())
        found = _servers.get(key)
        if found is None:
            found = _servers[key] = Server(url)
            atexit.register(found.close)
        return found


def known(public: str) -> str:
    """Returns the url with its password, where this process knows it by the one without."""
    with _lock:
        return next((url for url, pid in _servers if pid == os.getpid() and shown(url) == public), public)


def shown(url: str) -> str:
    """Returns a url without its password."""
    parts: dict[str, Any] = conninfo.conninfo_to_dict(url)
    if parts.pop("password", None) is None:
        return url
    return conninfo.make_conninfo("", **parts)


class Server:
    """One PostgreSQL server, as one process uses it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.public = shown(url)
        self._pid = os.getpid()
        self._guard = threading.RLock()
        self._dropped: deque[str] = deque()
        self._sessions: weakref.WeakSet[Closing] = weakref.WeakSet()
        self._warm: OrderedDict[int, weakref.ref[Resting]] = OrderedDict()
        self._count = 0
        self._home_connection = HomeConnection(self.connect())
        try:
            self._check()
        except DefinitionError:
            self._home_connection.connection.close()
            raise
        for name in ("lock_timeout", "idle_session_timeout"):
            self._home_connection.execute(f"SET {name} = '{_SETTINGS[name]}'")
        home = self._home_connection.connection.info.dbname
        self._prefix = f"quintain_{codec.digest(home.encode())[:6]}"
        self._owner = self._register()
        self._sweep()

    # -- connections

    def connect(self, database: str | None = None) -> psycopg.Connection[Any]:
        """Returns a connection in which each statement is a transaction, until BEGIN.

        Raises:
            ServerError: There is none to be had.
        """
        parts: dict[str, Any] = conninfo.conninfo_to_dict(self.url)
        if database is not None:
            parts["dbname"] = database
            settings = " ".join(f"-c {name}={value}" for name, value in _SETTINGS.items())
            parts["options"] = f"{parts.get('options') or ''} {settings}".strip()
        parts.setdefault("connect_timeout", _SECONDS)
        parts.setdefault("tcp_user_timeout", _SECONDS * 1000)
        parts.setdefault("application_name", "quintain")
        try:
            return psycopg.connect(
                conninfo.make_conninfo("", **parts),
                autocommit=True,
                cursor_factory=psycopg.RawCursor,
                prepare_threshold=None,  # a prepared statement would not survive a change of its tables
                context=ValueAdapters(),
            )
        except psycopg.OperationalError as error:
            raise ServerError(self.public, error, kind="transport_unreachable") from error

    def note(self, one: Closing) -> None:
        """Registers a session that is closed when the process ends."""
        self._sessions.add(one)

    def warm(self, one: Resting) -> None:
        """Records the use of a connection; of too many, those used longest ago are closed."""
        with self._guard:
            self._warm[id(one)] = weakref.ref(one)
            self._warm.move_to_end(id(one))
            for key in list(self._warm)[: max(len(self._warm) - _WARM, 0)]:
                oldest = self._warm[key]()
                if oldest is None or oldest.rest():
                    del self._warm[key]

    def lost(self, error: BaseException) -> NoReturn:
        """Marks the server as unreachable."""
        raise ServerError(self.public, error) from error

    # -- databases

    def name(self) -> str:
        """For the next world of this process."""
        with self._guard:
            self._count += 1
            return f"{self._prefix}_w_{self._owner}_{self._count}"

    def template(self, digest: str) -> str:
        """Returns the name of a template."""
        return f"{self._prefix}_t_{digest}"

    def shared(self, name: str) -> str:
        """Returns the name of a shared world."""
        return f"{self._prefix}_s_{name}"

    def exists(self, database: str) -> bool:
        with self.home_connection() as home:
            return home.execute("SELECT FROM pg_database WHERE datname = $1", [database]).fetchone() is not None

    def create(self, database: str, template: str = "template0") -> None:
        """Creates a database as a copy of another one, to which there must be no connections."""
        collation = " ENCODING 'UTF8' LOCALE 'C'" if template == "template0" else ""
        with self.home_connection() as home:
            self._drop(home)
            # A connection that was closed is gone a moment later. The server would look again only after 100 ms.
            for _ in range(_LOOKS):
                if not home.execute("SELECT FROM pg_stat_activity WHERE datname = $1", [template]).fetchone():
                    break
                home.execute("SELECT pg_sleep(0.0005)")
            home.execute(f'CREATE DATABASE "{database}" TEMPLATE "{template}"{collation} STRATEGY file_copy')

    def drop(self, database: str) -> None:
        """Schedules a world to be dropped."""
        self._dropped.append(database)

    def finish(self, database: str, name: str) -> bool:
        """Forbids connections to a complete database and renames it; False if another process had made the name."""
        with self.home_connection() as home:
            home.execute(f'ALTER DATABASE "{database}" ALLOW_CONNECTIONS false')
            try:
                home.execute(f'ALTER DATABASE "{database}" RENAME TO "{name}"')
            except pg.DuplicateDatabase:
                self.drop(database)
                return False
            return True

    def publish(self, database: str, name: str) -> bool:
        """Renames a world to a shared one; False if another process had made the name."""
        with self.home_connection() as home:
            try:
                home.execute(f'ALTER DATABASE "{database}" RENAME TO "{name}"')
            except pg.DuplicateDatabase:
                self.drop(database)
                return False
            return True

    def remove(self, database: str) -> None:
        """Drops a database now, also if it is in use."""
        with self.home_connection() as home:
            home.execute(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)')

    @contextlib.contextmanager
    def building(self, digest: str) -> Generator[None, None, None]:
        """Alone with the building of a template, among all processes that are patient for long enough."""
        number = int(digest[:7], 16)
        with self.home_connection() as home:
            home.execute(f"SET lock_timeout = '{_BUILDING}s'")
            held = True
            try:
                home.execute("SELECT pg_advisory_lock($1, $2)", [_BUILDERS, number])
            except pg.LockNotAvailable:
                held = False  # whoever has it may hang; two that build do no harm, for one name goes to one of them
            try:
                yield
            finally:
                home.execute(f"SET lock_timeout = '{_SECONDS}s'")
                if held:
                    home.execute("SELECT pg_advisory_unlock($1, $2)", [_BUILDERS, number])

    def reader(self, number: int) -> str:
        """Returns the name of the server's role for a role of a world; its only rights are those a template grants."""
        name = f"quintain_reader_{number}"
        with self.home_connection() as home, contextlib.suppress(pg.DuplicateObject, pg.UniqueViolation):
            home.execute(f'CREATE ROLE "{name}" NOLOGIN')
        return name

    @contextlib.contextmanager
    def home_connection(self) -> Generator[HomeConnection, None, None]:
        """The connection that holds this process's lease.

        Raises:
            ServerError: The server went away.
        """
        self.at_home()
        with self._guard:
            try:
                yield self._home_connection
            except psycopg.OperationalError as error:
                if not self._home_connection.connection.closed:
                    raise
                with _lock:
                    _servers.pop((self.url, self._pid), None)  # the next one connects anew
                self.lost(error)

    def at_home(self) -> None:
        """Raises DefinitionError in a child of this process: its connections are its parent's."""
        if not self.is_at_home:
            raise DefinitionError("a Database does not live on in a process that os.fork() made: dump() and load() it")

    @property
    def is_at_home(self) -> bool:
        """True in the process that connected."""
        return os.getpid() == self._pid

    def close(self) -> None:
        """Drops the worlds of this process."""
        if not self.is_at_home:
            return
        for one in list(self._sessions):
            one.close()
        if self._home_connection.connection.closed:
            return
        with contextlib.suppress(psycopg.Error):  # a server that is gone keeps nothing that is worth an error at exit
            for name in self._databases(f"{self._prefix}_w_{self._owner}_"):
                self._home_connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
            self._home_connection.connection.close()

    # -- inside

    def _check(self) -> None:
        version = self._home_connection.connection.info.server_version
        if version < _OLDEST:
            raise DefinitionError(f"PostgreSQL at {self.public} is {version // 10_000}; worlds need 15 or later")
        if self._home_connection.connection.info.parameter_status("is_superuser") != "on":
            user = self._home_connection.connection.info.user
            raise DefinitionError(
                f"{user!r} of {self.public} is not a superuser; a server for worlds is one of its own"
            )

    def _register(self) -> int:
        while True:
            owner = secrets.randbelow(2**31)
            row = self._home_connection.execute("SELECT pg_try_advisory_lock($1, $2)", [_OWNERS, owner]).fetchone()
            if row and row[0] and not self._databases(f"{self._prefix}_w_{owner}_"):
                return owner

    def _sweep(self) -> None:
        """Drops the worlds of owners that are dead."""
        prefix = f"{self._prefix}_w_"
        mine = f"{prefix}{self._owner}_"
        for name in self._databases(prefix):
            if name.startswith(mine):
                continue
            lock = [_OWNERS, int(name.removeprefix(prefix).partition("_")[0])]
            row = self._home_connection.execute("SELECT pg_try_advisory_lock($1, $2)", lock).fetchone()
            if row and row[0]:
                self._home_connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
                self._home_connection.execute("SELECT pg_advisory_unlock($1, $2)", lock)

    def _databases(self, prefix: str) -> list[str]:
        found = self._home_connection.execute(
            "SELECT datname FROM pg_database WHERE starts_with(datname, $1)", [prefix]
        )
        return [name for (name,) in found.fetchall()]

    def _drop(self, home: HomeConnection) -> None:
        while self._dropped:
            home.execute(f'DROP DATABASE IF EXISTS "{self._dropped.popleft()}" WITH (FORCE)')
