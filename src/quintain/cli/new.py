"""`quintain new`: a package with a new environment that passes its tests."""

from __future__ import annotations

import keyword
import sys
from importlib import resources
from pathlib import Path

import click

from quintain import __version__
from quintain.errors import UsageError

_FILES = {
    "pyproject.toml": "pyproject.toml",
    "README.md": "README.md",
    "src/@name@/__init__.py": "__init__.py",
    "src/@name@/environment.py": "environment.py",
    "tests/test_@name@.py": "test_environment.py",
}
"""Path in the new package to the template it is made from."""


@click.command(short_help="Create a package with a new environment.")
@click.argument("name")
@click.option(
    "--path",
    "parent",
    type=click.Path(path_type=Path),
    default=Path(),
    help="Parent folder.  [default: current folder]",
)
def new(*, name: str, parent: Path) -> None:
    """Make the package NAME: an environment, its tests and its entry point."""
    root = parent / name
    files = rendered(name)
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise UsageError(f"{root} already exists; choose another name, or another folder with --path")
    try:
        for path, text in files.items():
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot make {root}: {error.strerror}") from error
    click.echo(f"Created {root}. Its tests pass:\n")
    click.echo(f"  cd {root}\n  pip install --editable '.[test]'\n  pytest\n  quintain run {name}")


def rendered(name: str) -> dict[str, str]:
    """Returns the text of each file of a new package, by path.

    Raises:
        UsageError: The name cannot be one of a package.
    """
    if not (name.isidentifier() and name.isascii() and name == name.lower()) or keyword.iskeyword(name):
        raise UsageError(f"NAME must be lower-case letters, digits and _, as a Python package's is, got {name!r}")
    if name in sys.stdlib_module_names or name == "quintain":
        raise UsageError(f"NAME must not be {name!r}, which is a package already")
    class_ = "".join(part.capitalize() for part in name.split("_")) or "World"
    words = {"@name@": name, "@class@": class_, "@version@": __version__}
    folder = resources.files("quintain.cli") / "templates"
    files: dict[str, str] = {}
    for path, template in _FILES.items():
        text = (folder / f"{template}.tmpl").read_text(encoding="utf-8")
        files[_filled(path, words)] = _filled(text, words)
    return files


def _filled(text: str, words: dict[str, str]) -> str:
    for word, value in words.items():
        text = text.replace(word, value)
    return text
