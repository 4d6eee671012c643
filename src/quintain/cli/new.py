"""`quintain new`: a package with a new environment that passes its tests."""

from __future__ import annotations

import keyword
import sys
from pathlib import Path

import click

from quintain import __version__
from quintain.errors import UsageError

_FILES = {
    "pyproject.toml": ("pyproject.toml",),
    "README.md": ("README.md",),
    "src/@name@/__init__.py": ("__init__.py",),
    "src/@name@/environment.py": ("@template@.py",),
    "tests/test_@name@.py": ("test_environment.py", "@template@_test.py"),
}
"""Path in the new package to the templates it is made from, of which a template may lack the last."""
TEMPLATES = {
    "qa": {"@about@": "The agent answers a\nquestion in words, and the number in its answer counts.", "@extra@": ""},
    "tools": {
        "@about@": "The agent moves\nmoney between two accounts, and only the exact amount counts.",
        "@extra@": "",
    },
    "database": {
        "@about@": "The agent\ncancels one order among 300, and nothing else may change.",
        "@extra@": "[database]",
    },
}
"""Name of a template to the words that fill the shared files."""


@click.command(short_help="Create a package with a new environment.")
@click.argument("name")
@click.option(
    "--template",
    type=click.Choice(list(TEMPLATES)),
    default="tools",
    show_default=True,
    help="qa: questions with an answer; tools: tools on plain data; database: tools on a database.",
)
@click.option(
    "--path",
    "parent",
    type=click.Path(path_type=Path),
    default=Path(),
    help="Parent folder.  [default: current folder]",
)
def new(*, name: str, template: str, parent: Path) -> None:
    """Make the package NAME: an environment, its tests and its entry point."""
    root = parent / name
    files = rendered(name, template)
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


def rendered(name: str, template: str) -> dict[str, str]:
    """Returns the text of each file of a new package, by path.

    Raises:
        UsageError: The name cannot be one of a package.
    """
    from importlib import resources

    if not (name.isidentifier() and name.isascii() and name == name.lower()) or keyword.iskeyword(name):
        raise UsageError(f"NAME must be lower-case letters, digits and _, as a Python package's is, got {name!r}")
    if name in sys.stdlib_module_names or name == "quintain":
        raise UsageError(f"NAME must not be {name!r}, which is a package already")
    class_ = "".join(part.capitalize() for part in name.split("_")) or "World"
    words = {"@name@": name, "@class@": class_, "@version@": __version__, "@template@": template, **TEMPLATES[template]}
    folder = resources.files("quintain.cli") / "templates"
    files: dict[str, str] = {}
    for path, parts in _FILES.items():
        found = [folder / f"{_filled(part, words)}.tmpl" for part in parts]
        texts = [part.read_text(encoding="utf-8") for part in found if part.is_file()]
        files[_filled(path, words)] = _filled("\n\n".join(texts), words)
    return files


def _filled(text: str, words: dict[str, str]) -> str:
    for word, value in words.items():
        text = text.replace(word, value)
    return text
