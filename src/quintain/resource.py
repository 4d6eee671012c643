"""State that is not plain data: tables, databases, files, processes.

A world is split into plain bytes and the resources those bytes refer to by number. Everything else follows: a copy is
the same bytes over forked resources, a dump is the bytes beside dumped resources, a digest the bytes beside digests.
"""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Awaitable, Callable, Hashable, Iterable
from typing import Any, NamedTuple, Protocol, Self, TypeVar, cast

from . import codec

T = TypeVar("T")


class Resource(Protocol):
    """Object in a State that is not plain data. Any of the four may be `async def` where it blocks.

    The laws, checked by `quintain.testing.ResourceContract`: a fork has the digest of its origin and neither sees what
    the other does afterwards; `load(dump())` has the same digest and the same future; equal histories give equal
    digests in every process.
    """

    def fork(self) -> Self | Awaitable[Self]:
        """An independent twin."""
        ...

    def dump(self) -> bytes | Awaitable[bytes]:
        """Everything needed to continue in another process."""
        ...

    def digest(self) -> str | Awaitable[str]:
        """A name for the content: equal for equal histories, hex."""
        ...

    @classmethod
    def load(cls, data: bytes, *arguments: Any) -> Self:
        """The inverse of `dump`. `arguments` are the type arguments of the field: `Row` in `Table[Row]`.

        What blocks belongs into an `async def ready(self)`, which is awaited afterwards where a resource has one.
        """
        ...


class Parts(NamedTuple):
    """A world taken apart."""

    plain: bytes
    """A number stands where a resource was."""
    held: list[Any]
    """The resources, in the order of their numbers; one that is referred to twice is here once."""


def split(world: Any, *, canonical: bool = False) -> Parts:
    """Take a world apart without changing it.

    Args:
        world: Plain data and resources.
        canonical: Sort dicts and sets: equal worlds give equal bytes, but a copy would iterate in another order.

    Raises:
        TypeError: It holds an object that is neither plain data nor a Resource; the message names the type.
    """
    held: list[Any] = []
    numbers: dict[int, int] = {}

    def encode(value: Any) -> Any:
        following = len(numbers)
        number = numbers.setdefault(id(value), following)
        if number != following:
            return number
        if _is_resource(value.__class__):
            held.append(value)
            return number
        if hasattr(value, "pack"):
            return value.pack()
        name = type(value).__qualname__
        raise TypeError(f"a {name} is neither plain data nor a Resource (it lacks fork, dump, load or digest)")

    return Parts(codec.dumps(world, encode, canonical=canonical), held)


def join(type_: type[T], plain: bytes, held: Iterable[Any]) -> T:
    """Put a world together from its bytes and ready resources."""
    incoming = iter(held)
    return _decode(type_, plain, lambda declared: next(incoming))


def load(type_: type[T], data: bytes) -> T:
    """The inverse of `dump`, but for the `ready()` of resources that have one.

    Raises:
        msgspec.DecodeError: The bytes are torn or hold a world of another type.
    """
    plain, dumps = codec.loads(data, tuple[bytes, list[bytes]])
    incoming = iter(dumps)

    def make(declared: Any) -> Any:
        for one in incoming:
            return (typing.get_origin(declared) or declared).load(one, *typing.get_args(declared))
        raise ValueError(f"it has {len(dumps)} resources and refers to more")

    return _decode(type_, plain, make)


async def fork(world: T) -> T:
    """An independent copy of a world."""
    plain, held = split(world)
    return join(type(world), plain, await each("fork", held))


async def dump(world: Any) -> bytes:
    """Everything needed to continue in another process."""
    plain, held = split(world)
    return codec.dumps((plain, await each("dump", held)))


async def digest(world: object, *, is_copy: bool = False) -> str:
    """Returns 32 hex digits, equal for worlds that will behave alike.

    Args:
        world: Plain data and resources.
        is_copy: The world comes from `join` or `fork`, and nothing has been changed in it.

    Raises:
        TypeError: The world has a dict whose keys are not strings.
    """
    if not is_copy and _declares_float(cast(Hashable, type(world))):
        # Python puts the int 1 there without a word, a copy has 1.0, and their bytes differ: the copy's count.
        world = join(type(world), *split(world))
    plain, held = split(world, canonical=True)
    if not held:
        return codec.digest(plain)
    return codec.digest(codec.dumps((plain, await each("digest", held))))


async def ready(world: Any) -> None:
    """Await what the resources of a freshly loaded world still have to do."""
    await each("ready", (one for one in split(world).held if hasattr(one, "ready")))


async def loaded(type_: type[T], data: bytes) -> T:
    """`load`, and `ready`."""
    world = load(type_, data)
    await ready(world)
    return world


async def each(verb: str, held: Iterable[Any]) -> list[Any]:
    """Calls one method of each resource, and returns what they give or resolve to."""
    found: list[Any] = []
    for resource in held:
        value = getattr(resource, verb)()
        found.append(await value if hasattr(value, "__await__") else value)
    return found


async def settle(value: T | Awaitable[T]) -> T:
    """The value itself, or what it resolves to."""
    if inspect.isawaitable(value):
        return await value
    return value


@functools.cache
def is_bound(type_: Any) -> bool:
    """True if a resource of this type has a `bind(shared)`, which gives it its world's rng and clock.

    A State calls it for the resources in its fields, and so for those of every copy.
    """
    return hasattr(type_, "bind") and _is_resource(type_)


@functools.cache
def _is_resource(type_: Any) -> bool:
    return all(hasattr(type_, verb) for verb in ("fork", "dump", "digest", "load"))


def named_in(type_: Any) -> list[Any]:
    """Every type that the declaration of a type names, itself included, down to resources."""
    seen: list[Any] = []
    todo = [type_]
    while todo:
        one = todo.pop()
        if one in seen or typing.get_origin(one) is typing.ClassVar:
            continue
        seen.append(one)
        if not hasattr(one, "fork"):
            todo += (typing.get_origin(one), *typing.get_args(one))
            todo += typing.get_type_hints(one).values() if isinstance(one, type) else ()
    return seen


def foreign(type_: Any) -> Any:
    """Returns the first type in a declaration that is neither plain data nor a Resource; None if there is none.

    A dict whose keys are numbers, bytes or tuples is not plain data, because canonical bytes need text as keys.
    """
    import msgspec.inspect  # 5 ms that `import quintain` need not take

    for one in (type_, *named_in(type_)):
        key = next(iter(typing.get_args(one)), str) if typing.get_origin(one) is dict else str
        if (typing.get_origin(key) or key) in (bool, bytes, float, int, tuple):
            return one
        is_named = one is type_ or (isinstance(one, type) and one is not types.UnionType)
        if is_named and not (hasattr(one, "pack") or _is_resource(one)):
            try:
                if isinstance(msgspec.inspect.type_info(one), msgspec.inspect.CustomType):
                    return one
            except TypeError:
                return one
    return None


@functools.cache
def _declares_float(type_: Any) -> bool:
    return float in named_in(type_)


def _decode(type_: type[T], plain: bytes, make: Callable[[Any], Any]) -> T:
    known: list[Any] = []

    def decode(declared: Any, value: Any) -> Any:
        # Objects come in the order in which they were met, for bytes are written and read in one direction.
        if isinstance(value, bytes):
            known.append(declared.unpack(value))
            return known[-1]
        if value == len(known):
            known.append(make(declared))
        if not (isinstance(value, int) and 0 <= value < len(known)):
            raise ValueError(f"it refers to object {value!r} of {len(known)}")
        return known[value]

    return codec.loads(plain, type_, decode)
