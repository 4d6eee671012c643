"""Registry of the functions that a finding may name: relations, and probe functions of an op `ask`.

A finding comes from a file, and a name in a file must not decide which code runs. So a name is looked up among the
functions that a decorator has registered: those of this package, of installed plugins (the entry points in the group
`quintain.checks`), and of modules that the auditor has imported itself.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from quintain import plugins
from quintain.errors import UsageError

if TYPE_CHECKING:
    from .finding import Evidence
    from .player import Player
    from .probe import Probe, Record

Relation = Callable[[Sequence["Record"], "Evidence"], bool]
ProbeFunction = Callable[["Player", str, Any], Any]
_R = TypeVar("_R", bound=Relation)
_P = TypeVar("_P", bound=ProbeFunction)

_PACKAGE = "quintain.audit."
_BUILT_IN = f"{_PACKAGE}kernel.relations"  # module whose relations have ids without a module
_relations: dict[str, Relation] = {}
_probe_functions: dict[str, ProbeFunction] = {}
_modules: set[str] = set()
"""Modules outside of this package that may be imported for a name; a worker gets them from its auditor."""


def relation(function: _R) -> _R:
    """Registers a relation under "module:function"."""
    _relations[_id(function)] = function
    return function


def probe_function(function: _P) -> _P:
    """Registers a function for an op `ask` under "module:function"."""
    _probe_functions[_id(function)] = function
    return function


def find_relation(name: str) -> Relation:
    return _found(name, _relations, "relation")


def find_probe_function(name: str) -> ProbeFunction:
    return _found(name, _probe_functions, "probe_function")


def check_probes(probes: Iterable[Probe]) -> None:
    """Raises UsageError if an op of the probes names a function that is not registered."""
    ops = [op for probe in probes for op in probe.ops]
    for one in (*ops, *(inner for op in ops for lane in op.lanes for inner in lane)):
        if one.do == "ask":
            find_probe_function(one.name)


def foreign_modules() -> list[str]:
    """Returns the modules outside of this package that have registered functions."""
    names = {name.partition(":")[0] for name in (*_relations, *_probe_functions) if ":" in name}
    return sorted(_modules | {name for name in names if not name.startswith(_PACKAGE)})


def allow(modules: Iterable[str]) -> None:
    """Allows imports of these modules for the names of their functions."""
    _modules.update(modules)


_Kind = TypeVar("_Kind")


def _found(name: str, registered: dict[str, _Kind], decorator: str) -> _Kind:
    """Imports a function's module if it is trusted, else the modules of all installed plugins."""
    module = name.partition(":")[0] if ":" in name else _BUILT_IN
    if name not in registered and (module.startswith(_PACKAGE) or module in _modules):
        try:
            importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name != module:
                raise
    elif name not in registered:
        for plugin in plugins.names("checks"):
            plugins.load("checks", plugin)
    if name not in registered:
        raise UsageError(
            f"{name!r} is not registered; a function that a finding names has the decorator @{decorator}, in a module "
            "of an installed plugin (an entry point in the group quintain.checks)"
        )
    return registered[name]


def _id(function: Callable[..., Any]) -> str:
    module, name = function.__module__, function.__name__
    return name if module == _BUILT_IN else f"{module}:{name}"
