"""The parts of the documentation that are made of the code.

A page marks them with `<!-- begin generated: NAME -->` and `<!-- end generated -->`; what stands between is replaced.

    python docs/generate.py              rewrite the pages
    python docs/generate.py --check      status 1 where a page is not current
    python docs/generate.py --pictures   run the commands of `DRAWN` and draw what they print
"""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import click
import msgspec

from quintain.audit.kernel.check import registered
from quintain.audit.kernel.finding import CLASSES
from quintain.cli import program
from quintain.config import Config

DOCS = Path(__file__).parent
PICTURES = DOCS / "pictures"
WIDTH = 100
"""Columns of help texts."""
TERMINAL = 92
"""Columns of pictures."""
DRAWN = {"audit": ("audit sales --twin stale_cache --check x.read_your_writes --tasks 20", 1)}
"""File of each picture: arguments of `quintain`, and the exit status that is expected."""
FONTS = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
"""What the reader's machine has; a picture loads nothing."""

_GENERATED = re.compile(
    r"(?P<begin><!-- begin generated: (?P<name>[\w-]+) -->\n).*?(?P<end><!-- end generated -->)", re.DOTALL
)
_ATTRIBUTE = re.compile(r"^    (?P<name>\w+): (?P<words>.*?)(?=^    \w+: |\Z)", re.DOTALL | re.MULTILINE)


def config() -> str:
    """A row per field of Config: default and meaning, from the class.

    Raises:
        ValueError: A field without a sentence, or a sentence without a field.
    """
    doc = inspect.getdoc(Config) or ""
    found = _ATTRIBUTE.finditer(doc.partition("Attributes:\n")[2])
    said = {one["name"]: " ".join(one["words"].split()) for one in found}
    fields = {field.name: field.default for field in msgspec.structs.fields(Config)}
    if said.keys() != fields.keys():
        raise ValueError(f"fields and sentences of Config differ: {sorted(said.keys() ^ fields.keys())}")
    rows = [f"| `{name}` | {_default(default)} | {said[name]} |" for name, default in fields.items()]
    return "\n".join(["| field | default | meaning |", "|---|---|---|", *rows]) + "\n"


def commands() -> str:
    """The help text of the program and of each command."""
    return "\n".join(_help_texts())


_ALWAYS = {"tasks", "tools", "call", "sources"}
"""What every subject has that can be audited at all."""


def subject_checks() -> str:
    """A row for each optional method of an audit's subject that checks need, with their ids."""
    unlocked: dict[str, list[str]] = {}
    for one in sorted(registered(), key=lambda check: (list(CLASSES).index(check.class_), check.id)):
        for need in set(one.needs) - _ALWAYS:
            unlocked.setdefault(" or ".join(f"`{name}`" for name in need.split("|")), []).append(f"`{one.id}`")
    rows = [f"| {need} | {', '.join(ids)} |" for need, ids in sorted(unlocked.items())]
    return "\n".join(["| needed | by the checks |", "|---|---|", *rows]) + "\n"


GENERATORS: dict[str, Callable[[], str]] = {
    "config": config,
    "commands": commands,
    "subject-checks": subject_checks,
}


def render(page: str) -> str:
    """The page with its generated parts made anew.

    Raises:
        KeyError: It asks for a part that nothing makes.
    """
    return _GENERATED.sub(lambda part: f"{part['begin']}{GENERATORS[part['name']]()}{part['end']}", page)


def stale() -> list[Path]:
    """The pages that would change."""
    return [path for path in pages() if render(path.read_text()) != path.read_text()]


def pages() -> list[Path]:
    return [DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md"))]


def picture(arguments: str, status: int) -> str:
    """Returns the output of a command on a terminal as an SVG that loads nothing.

    Raises:
        RuntimeError: The command ended with another status.
    """
    from rich.console import Console
    from rich.terminal_theme import MONOKAI
    from rich.text import Text

    command = [sys.executable, "-m", "quintain", *arguments.split()]
    wide = os.environ | {"COLUMNS": str(TERMINAL), "FORCE_COLOR": "1", "TERM": "xterm-256color"}
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=wide)
    if done.returncode != status:
        raise RuntimeError(f"quintain {arguments} ended with {done.returncode}, not {status}: {done.stderr}")
    console = Console(record=True, width=TERMINAL, file=StringIO(), force_terminal=True)
    console.print(Text.from_ansi(done.stdout.rstrip()))
    drawn = console.export_svg(title=f"quintain {arguments}", theme=MONOKAI)
    drawn = re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)
    return drawn.replace("Fira Code, monospace", FONTS)


def main(arguments: list[str]) -> int:
    if "--pictures" in arguments:
        PICTURES.mkdir(exist_ok=True)
        for name, (command, status) in DRAWN.items():
            (PICTURES / f"{name}.svg").write_text(picture(command, status))
    old = stale()
    for path in old:
        sys.stdout.write(f"{path.relative_to(DOCS.parent)}\n")
        if "--check" not in arguments:
            path.write_text(render(path.read_text()))
    return int("--check" in arguments and bool(old))


def _default(value: object) -> str:
    if value is None or value is msgspec.UNSET:
        return "none" if value is None else "unset"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _help_texts() -> Iterator[str]:
    settings: dict[str, Any] = {**program.context_settings, "terminal_width": WIDTH, "max_content_width": WIDTH}
    top = click.Context(program, info_name="quintain", **settings)
    yield f"```text\n{program.get_help(top)}\n```\n"
    for name in program.list_commands(top):
        command = program.get_command(top, name)
        if command is None or command.hidden:
            continue
        context = click.Context(command, info_name=name, parent=top)
        yield f"## quintain {name}\n\n```text\n{textwrap.dedent(command.get_help(context))}\n```\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
