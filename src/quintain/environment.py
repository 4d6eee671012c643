"""Environment: E = {T, H, V, S, C} as an immutable value, its fingerprint, and `Benchmark`."""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import sys
import types
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Generic, Self, cast

import msgspec

from . import codec, resource
from .config import Config
from .errors import DefinitionError, UsageError, author_frames, describe, is_framework, short
from .executor import ALARM, Executor
from .harness import Harness
from .state import S, State, parts
from .task import Task
from .tools import Tool, collect
from .verifier import Verifier

SPLITS = ("train", "validation", "test")


_FOREIGN = {*sys.stdlib_module_names, "msgspec"}


class Environment(Generic[S]):
    """An environment.

    Args:
        name: An identifier.
        tasks: Split name to its tasks, always the same ones in the same order.
        harness: Drives an episode.
        verifier: Judges it.
        state: The class of the world; its tools are the actions.
        config: Limits and dials.
        splits: The names that `tasks` knows.

    Raises:
        DefinitionError: The parts do not fit together; the message names the offending one.
    """

    executor: Executor = ALARM
    """Runs the tools and scoring functions."""

    remote_begin: Callable[..., Awaitable[Any]] | None = None
    """Begins an episode whose world is in another process; None if worlds are in this one. Used by `Episode.begin`."""

    def __init__(
        self,
        name: str,
        *,
        tasks: Callable[[str], Iterable[Task[S]]],
        harness: Harness,
        verifier: Verifier[S],
        state: type[S],
        config: Config | None = None,
        splits: tuple[str, ...] = SPLITS,
    ) -> None:
        if not name.isidentifier():
            raise DefinitionError(f"an environment's name must be an identifier, got {name!r}")
        if not splits:
            raise DefinitionError(f"environment {name!r} has no splits")
        _check_parts(name, tasks, harness=harness, verifier=verifier, state=state, config=config)
        self.name = name
        self.harness = harness
        self.verifier = verifier
        self.state = state
        self.config = config or Config()
        self.splits = splits
        self.tools: dict[str, Tool] = collect(state)
        self._offered: frozenset[str] | None = None  # Names of the tools that a task offers; None for all.
        self._by_role: dict[str, tuple[Tool, ...]] = {}
        described = [(t.name, t.description, t.parameters, t.roles) for t in self.tools.values()]
        self.tools_digest = codec.digest(codec.json(described))
        self.fingerprint = self._fingerprint()
        self._make = tasks
        self._tasks: dict[str, Sequence[Task[S]]] = {}
        self._places: dict[str, dict[str, int]] = {}

    def tools_of(self, role: str) -> tuple[Tool, ...]:
        """The tools that an actor of this role may call, in their order."""
        if role not in self._by_role:
            self._by_role[role] = tuple(tool for tool in self.tools.values() if self._offers(tool, role))
        return self._by_role[role]

    def tool_of(self, role: str, name: str) -> Tool | None:
        """Returns the tool that an actor of this role calls by this name; None if it may call none."""
        tool = self.tools.get(name)
        return tool if tool is not None and self._offers(tool, role) else None

    def _offers(self, tool: Tool, role: str) -> bool:
        return role in tool.roles and (self._offered is None or tool.name in self._offered)

    def for_task(self, task: Task[S]) -> Environment[S]:
        """Returns the environment in which actors see and call only the tools of a task.

        Raises:
            DefinitionError: The task offers a tool that the environment lacks.
        """
        offered = None if task.tools is None else frozenset(task.tools)
        if offered == self._offered:
            return self
        if missing := sorted((offered or frozenset()) - self.tools.keys()):
            raise DefinitionError(f"task {task.id!r} offers {missing}; {self.name} has only {', '.join(self.tools)}")
        twin = copy.copy(self)
        twin._offered, twin._by_role = offered, {}
        return twin

    def tasks(self, split: str) -> Sequence[Task[S]]:
        """The tasks of a split.

        Raises:
            UsageError: No such split.
            DefinitionError: The author's function raised.
        """
        if split not in self.splits:
            raise UsageError(f"{self.name} has no split {split!r}; it has {', '.join(self.splits)}")
        if split not in self._tasks:
            try:
                made = cast(object, self._make(split))
                if isinstance(made, Iterable):
                    tasks = cast(Iterable[Task[S]], made)
                    self._tasks[split] = tasks if isinstance(tasks, Sequence) else tuple(tasks)
            except Exception as error:
                cause = describe(f"{type(error).__name__}: {error}", author_frames(error))
                raise DefinitionError(f"tasks({split!r}) of {self.name} raised {cause}") from error
            if split not in self._tasks:
                raise DefinitionError(f"tasks({split!r}) of {self.name} returned {short(made)}, expected Tasks")
        return self._tasks[split]

    def task(self, split: str, id: str) -> Task[S]:
        """One task by its id.

        Raises:
            UsageError: No such task.
        """
        tasks, places = self.tasks(split), self._places.setdefault(split, {})
        if id in places:
            return tasks[places[id]]
        for index in range(len(places), len(tasks)):
            task = tasks[index]
            places[task.id] = index
            if task.id == id:
                return task
        raise UsageError(f"split {split!r} of {self.name} has no task {id!r}")

    def replace(
        self, *, config: Config | None = None, harness: Harness | None = None, verifier: Verifier[S] | None = None
    ) -> Self:
        """The same environment with another configuration, harness or verifier."""
        twin = copy.copy(self)
        twin.config = config or self.config
        if harness is not None or verifier is not None:
            twin.harness, twin.verifier = harness or self.harness, verifier or self.verifier
            twin.fingerprint = twin._fingerprint()
        return twin

    async def freeze(self, split: str) -> Benchmark:
        """Name everything that a published number depends on; builds every task of the split once."""
        digests = [await task.digest(task.world()) for task in self.tasks(split)]
        return Benchmark(
            environment=self.name,
            fingerprint=self.fingerprint,
            tools_digest=self.tools_digest,
            split=split,
            tasks=len(digests),
            tasks_digest=codec.digest(codec.dumps(digests)),
            config=self.config,
            criteria=tuple(c.name for c in self.verifier.criteria),
        )

    def _fingerprint(self) -> str:
        """Digest of the author's code, and of what harness and criteria were set up with.

        The code is every source file of the packages that state, parts, harness and criteria come from. Not in it are
        config and tasks, which a trace names apart, and this framework, whose releases must replay each other's traces.
        """
        functions = [c.fn for c in self.verifier.criteria]
        owners = [*_classes(self.state), type(self.harness), *map(_definition, functions)]
        code = sorted({source for owner in owners for source in sources(owner)})
        setup = [settings(one) for one in (self.harness, *functions)]
        rules = [(c.name, c.level, c.weight, c.low, c.high, c.normalize, c.after) for c in self.verifier.criteria]
        whole = (self.name, code, setup, rules, self.verifier.combine, self.tools_digest)
        return codec.digest(codec.dumps(whole))


class Benchmark(msgspec.Struct, frozen=True, kw_only=True):
    """A frozen environment: request, environment, stopping criteria and scorer, by name and digest.

    Two numbers are comparable exactly when their benchmarks have the same `digest`.
    """

    environment: str
    fingerprint: str
    tools_digest: str
    split: str
    tasks: int
    tasks_digest: str
    config: Config
    criteria: tuple[str, ...]

    @property
    def digest(self) -> str:
        return codec.digest(codec.dumps(self))


def _check_parts(name: str, tasks: object, *, harness: object, verifier: object, state: Any, config: object) -> None:
    """Checks the kinds of the parts, for authors without a type checker.

    Raises:
        DefinitionError: A part is of another kind, a field of the state cannot be stored, or episodes would share one.
    """
    for what, given, is_right, wanted in (
        ("tasks", tasks, callable(tasks), "a function from the name of a split to its tasks"),
        ("harness", harness, hasattr(harness, "play") and not isinstance(harness, type), "an object, as ToolLoop()"),
        ("verifier", verifier, isinstance(verifier, Verifier), "a Verifier, as Verifier(criterion)"),
        ("state", state, _is_state(state), "a subclass of State"),
        ("config", config, isinstance(config, Config | None), "a Config"),
    ):
        if not is_right:
            raise DefinitionError(f"{what} of environment {name!r} must be {wanted}, got {short(given)}")
    for field in msgspec.structs.fields(state):
        if (stray := resource.foreign(field.type)) is not None:
            which = f"field {field.name!r} of {state.__name__} is {short(stray)}; a state stores plain data"
            raise DefinitionError(f"{which} (dicts with text as keys), msgspec Structs, Tables and resources")
    for owner in _classes(state):
        typed = inspect.get_annotations(owner)
        for key, value in vars(owner).items():
            if isinstance(value, list | dict | set) and key not in typed and not key.startswith("__"):
                which = f"{owner.__name__}.{key} has no type, so all episodes share it"
                raise DefinitionError(f"{which}; annotate it to make it a field, or with ClassVar to share it")


def _is_state(given: object) -> bool:
    return isinstance(given, type) and issubclass(given, State)


def _classes(state: type[State]) -> Iterator[type]:
    """A State class with its bases, and the same of its parts."""
    yield from state.__mro__
    for part in parts(state).values():
        yield from _classes(part)


def _definition(fn: object) -> object:
    """Returns the class or function that holds the code of a scoring function."""
    function = getattr(fn, "__func__", fn)
    return function if isinstance(function, types.FunctionType) else type(fn)


def sources(owner: Any) -> tuple[str, ...]:
    """The author's code that a class or function belongs to."""
    module = sys.modules.get(owner.__module__)
    file = getattr(module, "__file__", None)
    if module is None or file is None:  # A notebook, a console, something generated.
        return (_compiled(owner),)
    if is_framework(module.__package__) or module.__name__.partition(".")[0] in _FOREIGN:
        return ()
    return _files(Path(file), in_package=bool(module.__package__)) or (_compiled(owner),)


@functools.cache
def _files(file: Path, *, in_package: bool) -> tuple[str, ...]:
    """The text of a module and, when it is in a package, of all that lies beside and below it."""
    files = file.parent.rglob("*.py") if in_package else [file]
    return tuple(path.read_text("utf-8") for path in files if path.suffix == ".py" and path.is_file())


def _compiled(owner: Any) -> str:
    """Returns a digest of compiled code, for code without source text."""
    members = vars(owner).values() if isinstance(owner, type) else [owner]
    functions = (getattr(member, "__func__", getattr(member, "fget", member)) for member in members)
    codes = [_code(function.__code__) for function in functions if isinstance(function, types.FunctionType)]
    return codec.digest(repr(codes).encode())


def _code(code: types.CodeType) -> tuple[Any, ...]:
    # A frozenset prints in the order of the process's hash seed.
    ordered = (sorted(map(repr, cast(Iterable[Any], c))) if isinstance(c, frozenset) else c for c in code.co_consts)
    constants = tuple(_code(c) if isinstance(c, types.CodeType) else repr(c) for c in ordered)
    return (code.co_name, code.co_code, code.co_names, constants, sys.version_info[:2])


def settings(thing: Any) -> tuple[str, dict[str, bytes]]:
    """Returns the name of a harness or scoring function, and its fields, or the closure and defaults of a function."""
    if isinstance(thing, types.FunctionType):
        cells = zip(thing.__code__.co_freevars, thing.__closure__ or (), strict=True)
        values = {name: _content(cell) for name, cell in cells}
        values |= {"()": thing.__defaults__, "(*)": thing.__kwdefaults__}
    else:
        names: Iterable[str] = getattr(thing, "__struct_fields__", ()) or getattr(thing, "__dict__", ())
        values = {name: getattr(thing, name) for name in names}
    return _name(thing), {name: _plain(value) for name, value in values.items()}


def _content(cell: types.CellType) -> Any:
    with contextlib.suppress(ValueError):  # Raised while the variable has no value yet.
        return cell.cell_contents
    return None


def _plain(value: Any) -> bytes:
    try:
        return codec.dumps(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return _name(value).encode()


def _name(thing: Any) -> str:
    return getattr(thing, "__qualname__", type(thing).__qualname__)
