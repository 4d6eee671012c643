"""Sound subjects of `sound.py`: built-in environments, seeded clean worlds, worlds of other folders and public ones."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from bench.audit.detectors import Case, cases
from quintain import plugins
from quintain.audit.kernel.loader import Subject

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
FOLDERS = ("sound", "sound_later", "sound_odd")
"""Folders of worlds; `worlds` says what their modules hold."""


class TrueFinding(NamedTuple):
    """A bug that a public environment really has, so that its finding is not a false one."""

    check: str
    title: str
    """Beginning of the finding's title."""
    why: str
    shows: str
    """Python that shows the bug without the audit, where the package is installed."""


class Sound(NamedTuple):
    """A subject on which the audit must report nothing.

    `needs` names requirements of `_peer_install`, `serves` an environment for `_sound_openenv.py`.
    """

    case: Case
    kind: str
    needs: str = ""
    serves: str = ""
    true: tuple[TrueFinding, ...] = ()


def corpus(*, slow: bool) -> Iterator[Sound]:
    """Yields all subjects; `coding` takes long, so it comes only with the slow ones."""
    yield from public()
    for case in cases():
        if case.suite == "clean" and not case.name.endswith(" after"):
            yield Sound(case, _kind(case))
    if slow:
        yield Sound(Case("clean", "coding", Subject("coding")), "built-in")
    for folder in FOLDERS:
        for file in sorted((HERE / folder).glob("[!_]*.py")):
            yield from worlds(file)


def missing() -> list[str]:
    """Returns the folders that are not there."""
    return [name for name in FOLDERS if not (HERE / name).is_dir()]


def public() -> Iterator[Sound]:
    """Yields the public environments, which `_sound_public.toml` lists."""
    listed = tomllib.loads((HERE / "_sound_public.toml").read_text(encoding="utf-8"))
    for one in listed["subject"]:
        spec = one.get("spec", "").replace("$HERE", str(HERE))
        case = Case("clean", one["name"], Subject(spec, one.get("options", {})))
        true = tuple(TrueFinding(**bug) for bug in one.get("true", ()))
        yield Sound(case, one["kind"], one["needs"], one.get("serves", ""), true)


def worlds(file: Path) -> Iterator[Sound]:
    """Yields the subjects of a module: its `SPECS`, else its `env`, else its plain classes; and a scorer with cases.

    A plain class has `reset` and `score`. A scorer is the function `score`; its cases lie beside it, as NAME.jsonl.
    """
    module = plugins._from_file(file)  # as the audit itself loads it
    prefix = f"{file.parent.name}/{file.stem}"
    names: list[str] = [*getattr(module, "SPECS", ())]
    if not names:
        names = ["env"] if hasattr(module, "env") else [one.__name__ for one in _plain(module)]
    for name in names:
        spec = str(ROOT / name) if ":" in name else f"{file}:{name}"
        label = prefix if len(names) == 1 else f"{prefix}:{spec.rpartition(':')[2]}"
        yield Sound(Case("clean", label, Subject(spec)), file.parent.name)
    rows = file.with_suffix(".jsonl")
    if rows.is_file() and inspect.isfunction(getattr(module, "score", None)):
        yield Sound(Case("clean", f"{prefix}:score", Subject(f"{file}:score", cases=str(rows))), "scorer")


def _kind(case: Case) -> str:
    folder = Path(case.subject.spec.partition(":")[0]).parent.name
    return "scorer" if case.subject.cases else folder or "built-in"


def _plain(module: ModuleType) -> list[type[Any]]:
    own = [one for one in vars(module).values() if inspect.isclass(one) and one.__module__ == module.__name__]
    return [one for one in own if all(callable(getattr(one, name, None)) for name in ("reset", "score"))]
