"""State (S): the world as plain data, so that it can be copied, hashed, forked and replayed.

Random numbers, time and identifiers are part of it. A world may hold *parts*: fields that are States themselves, usable
alone; inside another they share its random stream, clock, identifiers and end.
"""

from __future__ import annotations

import bisect
import functools
import hashlib
import inspect
import weakref
from collections.abc import Callable, MutableSequence, Sequence
from datetime import UTC, datetime
from typing import Any, Self, TypeVar

import msgspec

from . import codec, resource
from .errors import DefinitionError, ToolError

T = TypeVar("T")
S = TypeVar("S", bound="State")


class Rng(msgspec.Struct):
    """A counter-based generator: 20 bytes in a snapshot (random.Random needs 3,763).

    The n-th draw is BLAKE2b of n under the key, so a stream can be cut anywhere and no two tasks share one.
    """

    key: bytes = b""
    counter: int = 0

    def bits(self) -> int:
        """The next 64 bits."""
        self.counter += 1
        block = hashlib.blake2b(self.counter.to_bytes(8, "little"), key=self.key, digest_size=8)
        return int.from_bytes(block.digest(), "little")

    def random(self) -> float:
        """The next float in [0, 1)."""
        return (self.bits() >> 11) * 2.0**-53

    def below(self, n: int) -> int:
        """The next integer in [0, n), without modulo bias.

        Raises:
            ValueError: n is not in 1..2**64.
        """
        if not 0 < n <= 2**64:
            raise ValueError(f"n must be in 1..2**64, got {n}")
        limit = 2**64 - 2**64 % n
        while (bits := self.bits()) >= limit:
            pass
        return bits % n

    def choice(self, items: Sequence[T]) -> T:
        """One of the items."""
        return items[self.below(len(items))]

    def shuffle(self, items: MutableSequence[Any]) -> None:
        """Put the items into a random order, in place (Fisher-Yates)."""
        for i in range(len(items) - 1, 0, -1):
            j = self.below(i + 1)
            items[i], items[j] = items[j], items[i]

    def sample(self, items: Sequence[T], k: int) -> list[T]:
        """k different positions of `items`, in random order."""
        if not 0 <= k <= len(items):
            raise ValueError(f"cannot draw {k} of {len(items)} items")
        pool = list(items)
        self.shuffle(pool)
        return pool[:k]


class Timer(msgspec.Struct, frozen=True):
    """A call that the clock will make."""

    due: float
    number: int
    """Order of insertion; breaks ties, and names the timer for `cancel`."""
    part: tuple[str, ...]
    """Field names from the world down to the part whose method it is; empty for the world itself."""
    method: str
    arguments: dict[str, Any]


class Clock:
    """Virtual time: it moves only when the world says so.

    Attributes:
        now: Seconds since 1970-01-01 UTC. A world that shows no dates begins at 0.
    """

    __slots__ = ("_advancing", "_root", "_set", "_timers", "now")

    def __init__(self, now: float = 0.0, timers: Sequence[Timer] = (), count: int = 0) -> None:
        self.now = now
        self._timers = list(timers)
        self._set = count
        self._root: weakref.ref[State] | None = None
        self._advancing = False

    def pack(self) -> tuple[float, list[Timer], int]:
        """The arguments that make an equal clock."""
        return self.now, self._timers, self._set

    def belong(self, world: State) -> None:
        """Call the methods of this world from now on."""
        self._root = weakref.ref(world)

    @property
    def timers(self) -> tuple[Timer, ...]:
        """Timers that have not fired, in firing order."""
        return tuple(self._timers)

    @property
    def date(self) -> datetime:
        """`now` as a date in UTC."""
        return datetime.fromtimestamp(self.now, UTC)

    def after(self, seconds: float, method: Callable[..., object], /, **arguments: Any) -> int:
        """Calls `method` of this world or of a part with `arguments` in `seconds`. See `at`."""
        return self.at(self.now + seconds, method, **arguments)

    def at(self, due: float, method: Callable[..., object], /, **arguments: Any) -> int:
        """Have `method` called with `arguments` when the clock reaches `due`; returns the timer's number.

        Raises:
            ValueError: `due` is in the past, or not a number.
            TypeError: `method` belongs to another world, or the arguments are not plain data.
        """
        if not due >= self.now:
            raise ValueError(f"a timer is due at {due}, but it is {self.now} already")
        # Decoded once here, so that the arguments are the same whether or not the world is copied before they are used.
        plain = codec.loads(codec.dumps(arguments), dict[str, Any])
        if (part := _path(self.world, getattr(method, "__self__", None))) is None:
            raise TypeError(f"{method!r} is not a method of this world or of one of its parts")
        self._set += 1
        timer = Timer(float(due), self._set, part, getattr(method, "__name__", ""), plain)
        bisect.insort(self._timers, timer, key=lambda t: (t.due, t.number))
        return self._set

    def cancel(self, number: int) -> bool:
        """Forget a timer; False when it has fired or never was."""
        left = [timer for timer in self._timers if timer.number != number]
        found = len(left) < len(self._timers)
        self._timers = left
        return found

    def advance(self, seconds: float) -> None:
        """Let time pass. Due timers fire in (time, insertion) order, each at its own `now`; they may set others.

        Raises:
            ValueError: Time would run backwards.
            RuntimeError: A timer's method advanced the clock, or raised a ToolError (no model is there to read it).
        """
        if not 0 <= seconds < float("inf"):
            raise ValueError(f"a clock advances by 0 or more seconds, got {seconds}")
        if self._advancing:
            raise RuntimeError("a timer's method must not advance the clock that called it")
        goal = self.now + seconds
        self._advancing = True
        try:
            while self._timers and self._timers[0].due <= goal:
                timer = self._timers.pop(0)
                self.now = timer.due
                self._fire(timer)
        finally:
            self._advancing = False
        self.now = goal

    def _fire(self, timer: Timer) -> None:
        target: Any = self.world
        for name in timer.part:
            target = getattr(target, name)
        try:
            result = getattr(target, timer.method)(**timer.arguments)
        except ToolError as error:
            raise RuntimeError(f"timer {timer.method!r} raised ToolError({error}): no model reads it") from error
        if inspect.iscoroutine(result):
            result.close()
            raise TypeError(f"timer {timer.method!r} is async; time passes inside one call, so it cannot wait")

    @property
    def world(self) -> State:
        """The world that it belongs to, of which its own State may be a part.

        Raises:
            RuntimeError: That is gone.
        """
        world = self._root() if self._root else None
        if world is None:
            raise RuntimeError("this clock belongs to a world that is gone")
        return world


class Shared:
    """Random stream, clock, counters and end that a world shares with its parts."""

    __slots__ = ("clock", "counters", "finished", "rng")

    def __init__(self, packed: _PackedShared | None = None) -> None:
        packed = packed or _PackedShared(Rng(), 0.0, [], 0, {}, None)
        self.clock = Clock(packed.now, packed.timers, packed.count)
        self.rng, self.counters, self.finished = packed.rng, packed.counters, packed.finished

    def pack(self) -> bytes:
        # The fields of a `_PackedShared`, whose bytes are those of a tuple; it is packed several times a turn.
        return codec.dumps((self.rng, *self.clock.pack(), self.counters, self.finished))

    @classmethod
    def unpack(cls, data: bytes) -> Shared:
        return cls(codec.loads(data, _PackedShared))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shared) and self.pack() == other.pack()

    __hash__ = None  # type: ignore[assignment]  # mutable


class _PackedShared(msgspec.Struct, array_like=True):
    rng: Rng
    now: float
    timers: list[Timer]
    count: int
    counters: dict[str, int]
    finished: str | None


class State(msgspec.Struct, kw_only=True, weakref=True):
    """Base class of a world. Subclasses add fields, and methods marked `@tool`.

    Fields hold a tree of plain data, with strings for the keys of dicts: a list that two fields share is two lists in
    a copy. Only a Resource may be held twice.
    """

    shared: Shared = msgspec.field(default_factory=Shared)

    def __init_subclass__(cls, **options: Any) -> None:
        """A subclass's own `__post_init__` runs after this class's one, and on every copy too."""
        super().__init_subclass__(**options)
        if (own := vars(cls).get("__post_init__")) is not None:

            def both(self: State) -> None:
                State.__post_init__(self)
                own(self)

            cls.__post_init__ = both  # type: ignore[method-assign]

    def __post_init__(self) -> None:
        self._adopt_parts()
        self.clock.belong(self)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        self._adopt(value)

    def _adopt_parts(self) -> None:
        for name in _not_plain(self.__class__):
            self._adopt(getattr(self, name))
        for name in _with_bound(self.__class__):
            for one in resource.split(getattr(self, name)).held:
                self._adopt(one)

    def _adopt(self, part: Any) -> None:
        """Let a part share what its world has, and a resource that wants to know draw from it.

        A resource that was put into a list or dict later is met when the world is copied next.

        Raises:
            DefinitionError: It has identifiers, timers or draws of its own, which would be lost.
        """
        if isinstance(part, State) and part.shared is not self.shared:
            if part.shared != Shared():
                name, world = type(part).__name__, type(self).__name__
                raise DefinitionError(f"a {name} with a past cannot join a {world}: let it join first, then act")
            part.shared = self.shared
            part._adopt_parts()
        elif resource.is_bound(part.__class__):
            part.bind(self.shared)  # pyright: ignore[reportUnknownMemberType, reportAttributeAccessIssue]

    @property
    def rng(self) -> Rng:
        """The world's random stream."""
        return self.shared.rng

    @property
    def clock(self) -> Clock:
        """The world's virtual time and timers."""
        return self.shared.clock

    @property
    def finished(self) -> str | None:
        """Reason for which the world ended the episode; None while it goes on."""
        return self.shared.finished

    def new_id(self, prefix: str) -> str:
        """The next identifier: "R1", "R2", ... Never a uuid, so a replay gets the same ones."""
        counters = self.shared.counters
        n = counters[prefix] = counters.get(prefix, 0) + 1
        return f"{prefix}{n}"

    def finish(self, reason: str = "done") -> None:
        """End the episode after this turn."""
        self.shared.finished = reason

    def copy(self) -> Self:
        """An independent copy.

        Raises:
            DefinitionError: A resource's `fork()` must be awaited; then use `await quintain.resource.fork(state)`.
        """
        plain, held = resource.split(self)
        for one in held:
            if inspect.iscoroutinefunction(one.fork):
                raise DefinitionError(f"{type(one).__name__}.fork() must be awaited: await resource.fork(state)")
        return resource.join(type(self), plain, [one.fork() for one in held])


async def begin(start: S, *, seed: int, task_id: str) -> S:
    """Returns a private copy of a start state, with its random stream set and without an end."""
    state = await resource.fork(start)
    key = hashlib.blake2b(f"{seed}/{task_id}".encode(), digest_size=16).digest()
    state.shared.rng, state.shared.finished = Rng(key=key), None
    return state


def parts(type_: type[State]) -> dict[str, type[State]]:
    """The fields of a State class that are States themselves."""
    found: dict[str, type[State]] = {}
    for field in msgspec.structs.fields(type_):
        if isinstance(field.type, type) and issubclass(field.type, State):
            found[field.name] = field.type
    return found


@functools.cache
def _not_plain(type_: Any) -> tuple[str, ...]:
    """The fields of a State class that may hold a part or a resource."""
    return tuple(one.name for one in msgspec.structs.fields(type_) if one.type not in (bool, bytes, float, int, str))


@functools.cache
def _with_bound(type_: Any) -> tuple[str, ...]:
    """The fields of a State class that may hold, somewhere inside, a resource that wants to know its world."""
    declared: dict[str, Any] = {field.name: field.type for field in msgspec.structs.fields(type_)}
    own = {name for name, one in declared.items() if resource.is_bound(one)} | parts(type_).keys()
    deep = {name for name, one in declared.items() if any(map(resource.is_bound, resource.named_in(one)))}
    return tuple(name for name in declared if name in deep - own)


def _path(world: State, target: object) -> tuple[str, ...] | None:
    if world is target:
        return ()
    for name in world.__struct_fields__:
        part = getattr(world, name)
        if isinstance(part, State) and (rest := _path(part, target)) is not None:
            return (name, *rest)
    return None
