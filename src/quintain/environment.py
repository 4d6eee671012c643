"""E = {T, H, V, S, C}: a value with five parts. It holds nothing that changes during an episode."""

from __future__ import annotations

import copy
import inspect
import sys
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar, cast

import msgspec

from . import codec
from .config import Config
from .errors import DefinitionError, UsageError
from .harness import Harness
from .state import State
from .task import Task
from .tools import Tool, collect
from .verifier import Verifier

S = TypeVar("S", bound=State)

SPLITS = ("train", "validation", "test")


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
        self.name = name
        self.harness = harness
        self.verifier = verifier
        self.state = state
        self.config = config or Config()
        self.splits = splits
        self.tools: dict[str, Tool] = collect(state)
        self.tools_digest = codec.digest(
            codec.json([(t.name, t.description, t.parameters, t.roles) for t in self.tools.values()])
        )
        self.fingerprint = self._fingerprint()
        self._make = tasks
        self._tasks: dict[str, Sequence[Task[S]]] = {}
        self._places: dict[str, dict[str, int]] = {}

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
                made = self._make(split)
                self._tasks[split] = made if isinstance(made, Sequence) else tuple(made)
            except Exception as error:
                raise DefinitionError(
                    f"tasks({split!r}) of {self.name} raised {type(error).__name__}: {error}"
                ) from error
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
    ) -> Environment[S]:
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
        """Digest of the code that decides what happens: state, tools, criteria, harness. Config is recorded apart."""
        functions = [c.judge for c in self.verifier.criteria]
        owners = [*self.state.__mro__, type(self.harness), *functions]
        named = {inspect.getmodule(owner) or owner for owner in owners if _is_authors(owner)}
        sources = sorted(_source(owner) for owner in named)
        harness = codec.dumps(self.harness) if isinstance(self.harness, msgspec.Struct) else b""
        combine = [(c.name, c.level, c.weight, c.low, c.high, c.normalize, c.after) for c in self.verifier.criteria]
        return codec.digest(
            codec.dumps((self.name, sources, harness, combine, self.verifier.combine, self.tools_digest))
        )


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


def _is_authors(owner: Any) -> bool:
    module = getattr(owner, "__module__", "")
    return module not in ("builtins", "typing", "msgspec", "msgspec._core") and owner is not object


def _source(owner: Any) -> str:
    """Source text where there is a file, else a digest of the compiled code (a notebook, a generated class)."""
    try:
        return inspect.getsource(owner)
    except (OSError, TypeError):
        members = vars(owner).values() if isinstance(owner, type | types.ModuleType) else [owner]
        codes = [m.__code__ for m in members if isinstance(m, types.FunctionType)]
        return codec.digest(repr([_compiled(code) for code in codes]).encode())


def _compiled(code: types.CodeType) -> tuple[Any, ...]:
    # A frozenset prints in the order of the process's hash seed.
    ordered = (sorted(map(repr, cast(Iterable[Any], c))) if isinstance(c, frozenset) else c for c in code.co_consts)
    constants = tuple(_compiled(c) if isinstance(c, types.CodeType) else repr(c) for c in ordered)
    return (code.co_name, code.co_code, code.co_names, constants, sys.version_info[:2])
