"""Plugins: environments and agents by the names that a command line gives, and what other packages register.

A package offers something by an entry point in one of the groups `quintain.environments`, `.models`, `.judges`,
`.checks`, `.adapters` and `.readers`. What comes with Quintain is registered in the same way. Behind a name stands

* in `environments` an Environment, or a function of options that makes one;
* in `models` a function of options that makes an Agent; a text after the name and ":" is its first argument;
* in `adapters` a function that makes an Environment of the text after ":" and of options;
* in `judges`, `checks` and `readers` whatever those who ask for them say.
"""

from __future__ import annotations

import difflib
import hashlib
import importlib
import importlib.util
import inspect
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from .environment import Environment
from .errors import QuintainError, UsageError
from .harness import Agent

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUPS = ("environments", "models", "judges", "checks", "adapters", "readers")
DATA = (".jsonl", ".csv", ".parquet")
"""Suffixes of files with a prompt and an answer per row."""


def names(group: str) -> tuple[str, ...]:
    """Returns the sorted names that are registered in a group.

    Raises:
        UsageError: The group does not exist.
    """
    return tuple(sorted({entry.name for entry in _entries(group)}))


def load(group: str, name: str) -> Any:
    """The object registered under a name.

    Raises:
        UsageError: No such group or name, a name that two distributions claim, or a plugin that does not load.
    """
    # A distribution that is found twice on the path is still one.
    found = {(_owner(entry), entry.value): entry for entry in _entries(group) if entry.name == name}
    if not found:
        raise UsageError(_unknown(f"plugin of {group}", name, names(group)))
    if len(found) > 1:
        claims = " and ".join(f"{owner} ({value})" for owner, value in sorted(found))
        raise UsageError(f"{name!r} is registered twice in {group}, by {claims}; uninstall one of them")
    (((owner, _), entry),) = found.items()
    try:
        return entry.load()
    except Exception as error:
        raise UsageError(f"{name!r} in {group}, a plugin of {owner}, does not load: {_where(error)}") from error


def environment(spec: str, **options: Any) -> Environment[Any]:
    """Returns the environment that a spec names.

    Args:
        spec: A registered name ("sales"), "package.module:attr", "path/to/file.py:attr" (`env` without ":attr"), or
            "ADAPTER:TEXT" such as "tau2:retail", or a file with a suffix in `DATA`, see `quintain.tasks.from_file`.
        options: Keyword arguments for the function that the name leads to.

    Raises:
        UsageError: The name is unknown, does not load, or does not name an Environment; the message lists the names.
    """
    found: Environment[Any] = _find(_ENVIRONMENT, spec, options)
    return found


def agent(spec: str, **options: Any) -> Agent:
    """The agent that a command line names.

    Args:
        spec: A registered name ("oracle"), one with a text ("openai:gpt-4.1"), "package.module:attr", or
            "path/to/file.py:attr" (`agent` without ":attr").
        options: For the function that the name leads to.

    Raises:
        UsageError: As for `environment`.
    """
    found: Agent = _find(_AGENT, spec, options)
    return found


def attribute(spec: str) -> Any:
    """Returns the object that "path/to/file.py:attr" or "package.module:attr" names.

    Raises:
        UsageError: The file, module or attribute does not exist or does not load.
    """
    head, _, path = spec.rpartition(":")
    module = _from_file(Path(head)) if head.endswith(".py") else _module(head)
    if module is None:
        raise UsageError(f"module {head!r} does not exist; expected package.module:attr or path/to/file.py:attr")
    found: Any = module
    for name in path.split("."):
        if not hasattr(found, name):
            there = [name for name in vars(module) if not name.startswith("_")]
            raise UsageError(f"{module.__file__} has no {path!r}; it has: {', '.join(there) or 'nothing'}")
        found = getattr(found, name)
    return found


def package(name: str, *, extra: str) -> Any:
    """Returns an optional third-party module.

    Raises:
        UsageError: The module is not installed; the message is the line that installs it.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name.partition(".")[0]:
            raise
        raise UsageError(f"this needs {error.name}: pip install 'quintain[{extra}]'") from error


def module(path: Path) -> ModuleType:
    """Imports a Python file as a module.

    Raises:
        UsageError: The file does not exist or does not load.
    """
    return _from_file(path)


class _PluginKind(NamedTuple):
    """Kind of plugin; `plain` and `texts` are the entry-point groups of names without and with a text after ":"."""

    noun: str
    attribute: str
    plain: str
    texts: str
    is_one: Callable[[object], bool]


def _is_environment(found: object) -> bool:
    return isinstance(found, Environment)


def _is_agent(found: object) -> bool:
    return isinstance(found, Agent) and not inspect.isclass(found)


_ENVIRONMENT = _PluginKind("Environment", "env", "environments", "adapters", _is_environment)
_AGENT = _PluginKind("Agent", "agent", "models", "models", _is_agent)


def _find(kind: _PluginKind, spec: str, options: dict[str, Any]) -> Any:
    head, colon, text = spec.partition(":")
    if colon and head in names(kind.texts):  # Before files: the text may be a path.
        return _made(kind, spec, load(kind.texts, head), text, **options)
    if match := re.fullmatch(r"(.+\.py)(?::([\w.]+))?", spec):
        found = _attribute(_from_file(Path(match[1])), match[2] or kind.attribute, kind)
    elif kind is _ENVIRONMENT and Path(spec).suffix in DATA:
        return _made(kind, spec, attribute("quintain.tasks:from_file"), spec, **options)
    elif not colon and spec in names(kind.plain):
        found = load(kind.plain, spec)
    elif colon and (module := _module(head)) is not None:
        found = _attribute(module, text, kind)
    else:
        known = [*names(kind.plain), *(f"{name}:..." for name in names(kind.texts))]
        forms = [
            "package.module:attr",
            "path/to/file.py:attr",
            *(["path/to/data.jsonl"] if kind is _ENVIRONMENT else []),
        ]
        model = "; for a model of an endpoint write openai:NAME, as openai:gpt-5" if kind is _AGENT else ""
        raise UsageError(_unknown(kind.noun.lower(), spec, [*known, *forms]) + model)
    if not kind.is_one(found) and callable(found):
        return _made(kind, spec, found, **options)
    if options and kind.is_one(found):
        given = ", ".join(options)
        raise UsageError(f"{spec} takes no options, got {given}; it is an {kind.noun}, not a function that makes one")
    return _checked(kind, spec, found)


def _made(kind: _PluginKind, spec: str, make: Any, *texts: str, **options: Any) -> Any:
    """Calls a factory; arguments that do not fit its signature are a UsageError, not a bug inside."""
    signature = inspect.signature(make)
    try:
        signature.bind(*texts, **options)
    except TypeError as error:
        first = next(iter(signature.parameters.values()), None)
        if not texts and first is not None and first.kind is first.POSITIONAL_OR_KEYWORD and spec in names(kind.texts):
            raise UsageError(f"{spec} needs a text after a colon; write {spec}:{first.name.upper()}") from error
        raise UsageError(f"{spec}: {error}; it is called as {spec.partition(':')[0]}{signature}") from error
    try:
        found = make(*texts, **options)
    except QuintainError:
        raise
    except Exception as error:
        raise UsageError(f"{spec} cannot be made: {_where(error)}") from error
    return _checked(kind, spec, found)


def _checked(kind: _PluginKind, spec: str, found: Any) -> Any:
    if not kind.is_one(found):
        raise UsageError(f"{spec} must be an {kind.noun} or a function that makes one, it is of {type(found)}")
    return found


def _attribute(module: ModuleType, path: str, kind: _PluginKind) -> Any:
    found: Any = module
    for name in path.split("."):
        if not hasattr(found, name):
            there = [name for name, value in vars(module).items() if kind.is_one(value)]
            raise UsageError(
                f"{module.__file__} has no {path!r}; it has the {kind.noun}s: {', '.join(there) or 'none'}"
            )
        found = getattr(found, name)
    return found


def _module(name: str) -> ModuleType | None:
    """An importable module by its dotted name, also from the current folder; None when there is none.

    Raises:
        UsageError: It is there, but breaks.
    """
    if not all(part.isidentifier() for part in name.split(".")):
        return None
    _on_path(Path.cwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            return None
        raise UsageError(f"{name} does not import: {_where(error)}") from error
    except (Exception, SystemExit) as error:
        raise UsageError(f"{name} does not import: {_where(error)}") from error


def _from_file(path: Path) -> ModuleType:
    """Imports a file as a module, the same one each time.

    A file inside a package is that package's module. Any other gets a name made of its name and path, so that two files
    called `env.py` do not clash, and none hides a module of the standard library. Files next to it can be imported.

    Raises:
        UsageError: The file does not exist, fails to import, or its module name is taken.
    """
    file = path.resolve()
    if not file.is_file():
        raise UsageError(f"file {str(path)!r} does not exist")
    folder, dotted = file.parent, [] if file.stem == "__init__" else [file.stem]
    while (folder / "__init__.py").is_file():
        dotted.insert(0, folder.name)
        folder = folder.parent
    _on_path(folder)
    if dotted != [file.stem]:
        module = _module(".".join(dotted))
        if module is None or module.__file__ is None or Path(module.__file__).resolve() != file:
            raise UsageError(f"{path} should be the module {'.'.join(dotted)}, but that is {module}")
        return module
    name = f"{re.sub(r'[^0-9A-Za-z_]', '_', file.stem)}_{hashlib.blake2b(bytes(file), digest_size=4).hexdigest()}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, file)
        assert spec is not None
        assert spec.loader is not None
        # Before it runs, as for any import: its classes look themselves up there.
        sys.modules[name] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(sys.modules[name])
        except (Exception, SystemExit) as error:
            del sys.modules[name]
            raise UsageError(f"{path} does not import: {_where(error, file)}") from error
    return sys.modules[name]


def _on_path(folder: Path) -> None:
    # At the end: a file called like a module of the standard library must not take its place.
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def _entries(group: str) -> Sequence[EntryPoint]:
    if group not in GROUPS:
        raise UsageError(_unknown("group of plugins", group, GROUPS))
    from importlib.metadata import entry_points  # 15 ms that `import quintain` need not take

    return tuple(entry_points(group=f"quintain.{group}"))


def _owner(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else "an unknown distribution"


def _unknown(noun: str, name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1) or difflib.get_close_matches(
        name.partition(":")[0], [one.partition(":")[0] for one in known], n=1
    )
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"unknown {noun} {name!r}; {hint}known: {', '.join(known) or 'none'}"


def _where(error: BaseException, file: Path | None = None) -> str:
    """An exception in one line: its type, its words, and the innermost place in `file`, or in any."""
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, SyntaxError):
        return text
    frames = traceback.extract_tb(error.__traceback__)
    places = [frame for frame in frames if file is None or frame.filename == str(file)]
    return f"{text} ({places[-1].filename}, line {places[-1].lineno})" if places else text
