"""Loader from a command-line spec to a factory of sessions; runs in the worker, so the auditor imports no subject."""

from __future__ import annotations

import importlib
import inspect
import math
import time
import urllib.parse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, TypeGuard, TypeVar, cast

import msgspec

from quintain import plugins
from quintain.audit.mutants.loading import Mutant
from quintain.contract import Contract
from quintain.environment import Environment
from quintain.errors import UsageError

from .adapter import ATTRIBUTES, Factory, SubjectAdapter, ToolSpec, plain

FOREIGN = ("gymnasium", "mcp", "openapi", "openenv", "ors", "verifiers")
"""Prefixes of a spec "KIND:TEXT"; the adapter is the module of that name in `quintain.audit.subjects`."""
SERVED = "remote"  # adapter for the URL of an environment behind `quintain serve`
HELD = frozenset({SERVED, "ors"})  # kinds whose sessions stay open on a server until they are closed there

_LIGHT = 64 << 8  # pages of the databases of a task that is audited within a budget
_FEWEST = 8  # number of tasks that are made, however long that takes

Component = Literal["T", "H", "V", "S", "C"]
T = TypeVar("T")


class Subject(msgspec.Struct, frozen=True, omit_defaults=True):
    """Subject as named on the command line.

    Attributes:
        index: Indices of tasks by name, as far as known; a worker can then make one task without all before it.
    """

    spec: str  # as in `quintain.plugins.environment`, "KIND:TEXT", or the name of a factory of plain subjects
    options: dict[str, str] = {}  # options of the environment; `split` chooses its tasks
    cases: str = ""  # file of cases; the spec then names a scoring function
    index: dict[str, int] = {}
    env: tuple[str, ...] = ()  # names of the user's environment variables that its process gets, beyond `child._KEPT`
    mutant: Mutant | None = None  # change of one of its files, for the process that loads it; see `mutants.loading`


class Source(msgspec.Struct, frozen=True):
    """File of the subject that is read and not imported; without `names` all of it belongs to the subject."""

    path: str
    part: Component
    names: tuple[str, ...] = ()


class About(msgspec.Struct, frozen=True):
    """Description of a subject: its `kind` is "environment", "plain", "scorer", "remote", or one of `FOREIGN`."""

    kind: str
    tasks: tuple[str, ...]  # all names; of an environment, whose tasks take time to make, some, spread evenly
    count: int  # number of its tasks
    tools: tuple[ToolSpec, ...]
    offers: frozenset[str]  # methods of the subject
    attributes: dict[str, Any]  # values of the `adapter.ATTRIBUTES` that it sets
    sources: tuple[Source, ...]
    fingerprint: str = ""  # fingerprint of the environment; empty for other subjects
    places: dict[str, str] = {}  # file and line of each tool that is a function of the environment
    contracts: dict[str, Contract] = {}  # what its author declares of tools, by name
    weights: tuple[int, ...] = ()  # pages of the databases of each task in `tasks` of an environment
    indices: tuple[int, ...] = ()  # index of each task in `tasks` of an environment

    @property
    def light(self) -> tuple[str, ...]:
        """Returns the tasks whose databases have at most 64 MiB, or twice as much as that of the lightest one.

        A larger world shows the same bugs, and takes the time of many probes.
        """
        most = max(_LIGHT, 2 * min(self.weights, default=0))
        weighed = zip(self.tasks, self.weights, strict=True) if self.weights else ((name, 0) for name in self.tasks)
        return tuple(name for name, weight in weighed if weight <= most)


class Made(msgspec.Struct, frozen=True):
    """Tasks that an environment makes for its description: a number of them, spread evenly, or those at indices.

    Of a number of tasks, it makes as many as it can in `seconds`, but a few at least. Several processes make a share
    each: `share` is the number of this one, and of all.
    """

    tasks: int | tuple[int, ...] = 0
    seconds: float = math.inf
    share: tuple[int, int] = (0, 1)


class LoadedSubject(msgspec.Struct, frozen=True):
    """Subject that is loaded and can make instances."""

    kind: str
    factory: Factory
    sources: tuple[Source, ...]
    fingerprint: str = ""

    def warm(self, task: str) -> Callable[[], dict[str, Any]] | None:
        """Prepares a task once, before many forks need it; returns a reader of its start state.

        Only for the project's own environments, whose worlds are made by pure functions; None for others.
        """
        if self.kind != "environment":
            return None
        subject = self.factory()
        subject.reset(task, 0)
        read: Callable[[], dict[str, Any]] = subject.start_state
        return read


def load_subject(wanted: Subject) -> LoadedSubject:
    """Loads a subject, without an instance; raises UsageError if it does not exist or cannot be audited."""
    spec, (head, _, text) = wanted.spec, wanted.spec.partition(":")
    if head in {"http", "https"}:
        split = wanted.options.get("split")
        head, text = SERVED, spec + (f"?split={urllib.parse.quote(split)}" if split is not None else "")
    if head in {SERVED, *FOREIGN}:
        return LoadedSubject(head, _adapter(head).make(text), ())
    options = {name: value for name, value in wanted.options.items() if name != "split"}
    registered = {*plugins.names("environments"), *plugins.names("adapters")}
    is_registered = head in registered or options or ":" not in spec
    find: Callable[..., Any] = plugins.environment if is_registered else plugins.attribute
    found = find(spec, **options)
    if wanted.cases:
        return LoadedSubject("scorer", _adapter("scorer").of(found, Path(wanted.cases)), (_source(found, "V"),))
    made: Any = found
    if not _is_environment(found):
        if not callable(found):
            raise UsageError(f"{spec} must be an Environment or a function that returns a subject, it is {type(found)}")
        try:
            inspect.signature(found).bind()
        except TypeError as error:
            words = f"{spec} is called without arguments: {error}; with --cases FILE it is a scorer"
            raise UsageError(words) from error
        made = found()
    if _is_environment(made):
        return _native(made, wanted)
    if all(callable(getattr(made, name, None)) for name in ("reset", "step")) and not hasattr(made, "score"):
        return LoadedSubject("gymnasium", _adapter("gymnasium").of(found), (_source(type(made), "S"),))
    return LoadedSubject("plain", cast(Factory, found), tuple(_sources(type(made))))


NO_TASKS = Made()
"""No task of an environment; all names of other subjects."""


def describe(opened: LoadedSubject, wanted: Made = NO_TASKS) -> About:
    """Describes a subject; an environment is described with the tasks that are wanted."""
    adapter = SubjectAdapter(opened.factory())
    is_ours = opened.kind == "environment"
    count = len(adapter.subject.shelf if is_ours else adapter.tasks)
    made = _made(adapter.subject, count, wanted) if is_ours else {}
    known = [name for name in ATTRIBUTES if hasattr(adapter.subject, name)]
    about = About(
        kind=opened.kind,
        tasks=tuple(made.values() if is_ours else adapter.tasks),
        count=count,
        weights=tuple(adapter.subject.weight(name) for name in made.values()),
        indices=tuple(made),
        tools=adapter.tools(),
        offers=adapter.offers,
        attributes={name: plain(getattr(adapter.subject, name))[0] for name in known},
        sources=opened.sources,
        fingerprint=opened.fingerprint,
        places=adapter.subject.places() if is_ours else {},
        contracts=adapter.contracts(),
    )
    if "close" in adapter.offers:
        adapter.subject.close()
    return about


def merged(some: Sequence[About]) -> About:
    """Returns one description of a subject, with the tasks of several."""
    rows = sorted(row for one in some if one.indices for row in zip(one.indices, one.tasks, one.weights, strict=True))
    if not rows:
        return some[0]
    indices, tasks, weights = zip(*rows, strict=True)
    return msgspec.structs.replace(some[0], indices=indices, tasks=tasks, weights=weights)


def _made(subject: Any, count: int, wanted: Made) -> dict[int, str]:
    """Makes tasks of an environment until time is up, and returns their names by index.

    The first ones are spread as evenly as all: their places in binary digits, read backwards, ascend.
    """
    tasks, until, (number, shares) = wanted.tasks, time.monotonic() + wanted.seconds, wanted.share
    indices = spread(range(count), tasks) if isinstance(tasks, int) else [place for place in tasks if place < count]
    width = len(f"{len(indices):b}")
    order = sorted(range(len(indices)), key=lambda place: f"{place:0{width}b}"[::-1])
    found: dict[int, str] = {}
    for place in order[number::shares]:
        if len(found) < _FEWEST / shares or time.monotonic() < until:
            found[indices[place]] = next(subject.shelf.names((indices[place],)))
    return dict(sorted(found.items()))


def spread(some: Sequence[T], count: int) -> tuple[T, ...]:
    """Returns `count` of some things, spread evenly; all if there are fewer."""
    last = (len(some) - 1) / max(1, count - 1)
    return tuple(some) if count >= len(some) else tuple(some[round(place * last)] for place in range(count))


def _is_environment(found: object) -> TypeGuard[Environment[Any]]:
    return isinstance(found, Environment)


def _native(env: Environment[Any], wanted: Subject) -> LoadedSubject:
    factory: Callable[[], Any] = _adapter("native").of(env, wanted.options.get("split"), index=wanted.index)
    judges: list[tuple[Any, Component]] = [(criterion.fn, "V") for criterion in env.verifier.criteria]
    things: list[tuple[Any, Component]] = [(env.state, "S"), (env.harness, "H"), (env.tasks, "T"), *judges]
    found: dict[tuple[str, str], Source] = {}
    for thing, part in things:
        owner = thing if inspect.isclass(thing) or inspect.isfunction(thing) else cast(Any, type(thing))
        for source in _sources(owner, part):
            found.setdefault((source.path, part), source)
    return LoadedSubject("environment", factory, tuple(found.values()), env.fingerprint)


def _adapter(kind: str) -> Any:
    return importlib.import_module(f"quintain.audit.subjects.{kind}")


def _sources(owner: Any, part: Component = "S") -> Iterator[Source]:
    bases: tuple[Any, ...] = owner.__mro__ if inspect.isclass(owner) else (owner,)
    for one in bases:
        top, is_shipped = one.__module__.partition(".")[0], one.__module__.startswith(_SHIPPED)
        source = _source(one, part)
        if top not in _NOT_THEIRS and (top != "quintain" or is_shipped) and source.path:
            yield source


_NOT_THEIRS = ("builtins", "typing", "abc", "msgspec", "enum")
_SHIPPED = ("quintain.environments", "quintain.adapters")


def _source(owner: Any, part: Component) -> Source:
    try:
        return Source(inspect.getsourcefile(inspect.unwrap(owner)) or "", part, (owner.__qualname__.partition(".")[0],))
    except (TypeError, AttributeError):
        return Source("", part)
