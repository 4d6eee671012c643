"""Every code block of the README and of docs/ runs, page by page, as a reader would run it.

* The ```python blocks of a page run in order in one module. A block with `title="desk.py"` in its info string, or
  `# file: desk.py` as its first line, is also written to that file, so that later blocks and commands find it.
* In ```bash and ```console blocks the lines that start with `quintain` run in the same folder and exit with 0, or with
  N where the line ends in `# exit N`.
* `<!-- not run: why -->` directly above a block spares it.
* `<!-- needs: sandbox -->` on a page spares the page where this machine cannot isolate a program; `train` and `trl`
  spare it where that extra is not installed.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest

from quintain.resources.sandbox import Sandbox, SandboxUnavailable
from quintain.resources.workspace import Workspace
from tests.serve.clients import venvs
from tests.serve.model.test_clients import MINI, NPM

ROOT = Path(__file__).parents[2]
PAGES = [path for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))) if path.exists()]

FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,})(?P<language>\w*)(?P<info>[^`\n]*)$")
TITLE = re.compile(r'title="(?P<title>[\w./-]+)"')
FIRST_LINE = re.compile(r"# file: (?P<title>[\w./-]+)")
SPARED = re.compile(r"^\s*<!--\s*not run\b:?\s*(?P<reason>.*?)\s*-->\s*$")
COMMAND = re.compile(r"^(?:\$ )?(?P<command>quintain\b.*?)(?:\s*# exit (?P<status>\d+))?\s*$")
NEEDS = re.compile(r"^<!-- needs: (?P<what>\w+) -->$", re.MULTILINE)
SECONDS = 300


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    language: str
    title: str | None
    """The file that it is written to; None when it has no name."""
    code: str
    line: int
    """Of its first line of code in the page, from 1."""
    spared: str | None
    """Reason for not running it; None if it runs, empty if no reason is given."""


def blocks(page: str) -> Iterator[Block]:
    lines = page.splitlines()
    number = 0
    while number < len(lines):
        start = FENCE.match(lines[number])
        number += 1
        if not start:
            continue
        first = number
        while number < len(lines) and lines[number].strip() != start["fence"]:
            number += 1
        code = textwrap.dedent("\n".join(lines[first:number])) + "\n"
        number += 1
        title = TITLE.search(start["info"]) or FIRST_LINE.match(code)
        spared = SPARED.match(lines[first - 2]) if first > 1 else None
        yield Block(start["language"], title and title["title"], code, first + 1, spared and spared["reason"])


def skip_without_sandbox() -> None:
    async def law() -> None:
        try:
            await Sandbox().run(Workspace(), ["true"])
        except SandboxUnavailable as error:
            pytest.skip(str(error))

    asyncio.run(law())


def skip_without(module: str, extra: str) -> None:
    pytest.importorskip(module, reason=f"pip install '.[{extra}]'")
    warnings.simplefilter("ignore")  # TRL uses names that transformers calls old; pytest restores it.


MISSING: dict[str, Callable[[], None]] = {
    "sandbox": skip_without_sandbox,
    "train": partial(skip_without, "transformers", "train"),
    "trl": partial(skip_without, "trl", "trl"),
}


SLOW = {
    "audit-your-environment",
    "bring-an-environment",
    "export-training-data",
    "find-unchecked-requirements",
    "play-a-data-set",
    "poisoned-twins",
    "read-a-training-report",
    "review-failures",
    "run-an-agent-program",
    "serve-and-connect",
    "serve-behind-a-proxy",
    "serve-mcp",
    "serve-openenv",
    "serve-ors",
    "simulate-a-user",
    "test-your-environment",
    "train-asynchronously",
    "triage-a-run",
    "world-engine",
    "write-a-check",
}
"""Pages with more than a second of audits and servers: `make test-all` runs them."""

TIMED = [pytest.param(page, marks=pytest.mark.slow if page.stem in SLOW else ()) for page in PAGES]


def test_slow_pages_exist() -> None:
    assert {page.stem for page in PAGES} >= SLOW


@pytest.mark.parametrize("page", TIMED, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(page, tmp_path, monkeypatch)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_spared_block_has_a_reason(page: Path) -> None:
    assert not unexplained(page.read_text())


def unexplained(page: str) -> list[int]:
    return [block.line for block in blocks(page) if block.spared is not None and len(block.spared.split()) < 2]


def run(page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a page in a folder of its own."""
    for need in NEEDS.finditer(page.read_text()):
        MISSING[need["what"]]()
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    todo = [block for block in blocks(page.read_text()) if block.spared is None]
    for name in {Path(block.title).parts[0].removesuffix(".py") for block in todo if block.title}:
        # Another test's file may be called so, too.
        monkeypatch.delitem(sys.modules, name, raising=False)
    before = set(sys.modules)
    module = _module(page, folder, [block for block in todo if block.language == "python"])
    try:
        for block in todo:
            if block.language == "python":
                _run_python(block, module)
            elif block.language in {"bash", "console"}:
                _run_commands(block, page)
    finally:
        for name in set(sys.modules) - before:
            if str(getattr(sys.modules[name], "__file__", "")).startswith(str(folder)):
                del sys.modules[name]


def _module(page: Path, folder: Path, todo: list[Block]) -> ModuleType:
    """The page as a module: everything but its code is blank, so that line numbers, and inspect, stay right."""
    lines: list[str] = []
    for block in todo:
        lines += [""] * (block.line - 1 - len(lines)) + block.code.splitlines()
    path = folder / (re.sub(r"\W", "_", f"page_{page.stem}") + ".py")
    path.write_text("\n".join(lines) + "\n")
    module = sys.modules[path.stem] = ModuleType(path.stem)
    module.__file__ = str(path)
    return module


def _run_python(block: Block, module: ModuleType) -> None:
    if block.title:
        Path(block.title).parent.mkdir(parents=True, exist_ok=True)
        Path(block.title).write_text(block.code)
    code = compile("\n" * (block.line - 1) + block.code, str(module.__file__), "exec", dont_inherit=True)
    exec(code, vars(module))


def _run_commands(block: Block, page: Path) -> None:
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    for line in block.code.replace("\\\n", " ").splitlines():
        if not (command := COMMAND.match(line)):
            continue
        done = subprocess.run(
            ["sh", "-c", command["command"]],
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
            env={**os.environ, "PATH": path},
        )
        wanted = int(command["status"] or 0)
        said = f"{page.name}, block at line {block.line}: {command['command']}\n{done.stdout}{done.stderr}"
        assert done.returncode == wanted, f"exit {done.returncode}, not {wanted}: {said}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_install_line_of_a_page_covers_what_it_serves(page: Path) -> None:
    for block in blocks(page.read_text()):
        if "pip install" in block.code and "worlds" not in block.code and "all]" not in block.code:
            assert not re.search(r"quintain \w+ (support|enterprise)\b", block.code), block.code


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_installs_from_a_clone_since_no_index_has_it(page: Path) -> None:
    assert not re.search(r"pip install '?quintain\b", page.read_text())


@pytest.mark.parametrize(
    ("page", "tested"),
    [
        ("serve-ors.md", (venvs.ORS[0][0], venvs.OPENREWARD[0][0], venvs.INSPECT[0][0], venvs.TRL[1][0])),
        ("serve-openenv.md", (venvs.OPENENV[0][0], venvs.TRL[1][0])),
        ("run-an-agent-program.md", (MINI[0], *NPM)),
    ],
)
def test_the_versions_that_a_page_names_are_those_that_are_tested(page: str, tested: tuple[str, ...]) -> None:
    text = (ROOT / "docs" / "how-to" / page).read_text()
    for client in tested:
        name, version = re.split(r"==|(?<=.)@", client)
        assert version in text, f"{page} names another version of {name} than {version}"
        assert name in text


# The tests of this test: a page in, a verdict out.

GOOD = """
# A page

```python title="lamp.py"
import inspect

class Lamp:
    lit = True
```

```python
# file: desk/__init__.py
from lamp import Lamp as Other
```

1. A list

   ```python
   assert Lamp is not Other
   assert "lit = True" in inspect.getsource(Lamp)
   import desk
   ```

<!-- not run: needs a key -->
```python
raise RuntimeError
```

```json
not python
```
"""


def _page(folder: Path, text: str) -> Path:
    page = folder / "page.md"
    page.write_text(text)
    return page


def test_blocks_share_a_module_and_their_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("lamp", "desk"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))  # Somebody else's, imported before.
    run(_page(tmp_path, GOOD), tmp_path, monkeypatch)
    assert not {"lamp", "desk", "page_page"} & set(sys.modules)


def test_an_error_names_its_line_in_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = _page(tmp_path, "One\n\n```python\nx = 1\n```\n\n```python\nassert x == 2\n```\n")
    with pytest.raises(AssertionError) as info:
        run(page, tmp_path, monkeypatch)
    assert info.traceback[-1].lineno == 7  # counted from 0


@pytest.mark.parametrize(
    ("block", "wrong"),
    [
        ("```bash\nquintain one \\\n  two\necho three; false\n```", None),
        ("```console\n$ quintain fail  # exit 3\nsomething\n```", None),
        ("```bash\nquintain fail\n```", "exit 3, not 0"),
        ("```bash\nquintain one  # exit 3\n```", "exit 0, not 3"),
        ("```\nquintain fail\n```", None),
    ],
)
def test_commands_run(block: str, wrong: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "bin" / "quintain"
    fake.parent.mkdir()
    fake.write_text('#!/bin/sh\necho "$@" >> log\n[ "$1" != fail ] || exit 3\n')
    fake.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(fake.with_name("python")))
    if wrong:
        with pytest.raises(AssertionError, match=wrong):
            run(_page(tmp_path, block), tmp_path, monkeypatch)
    else:
        run(_page(tmp_path, block), tmp_path, monkeypatch)
    if "two" in block:
        assert (tmp_path / "log").read_text() == "one two\n"


@pytest.mark.parametrize("comment", ["<!-- not run: -->", "<!-- not run -->", "<!-- not run: no -->"])
def test_a_block_is_not_spared_without_a_reason(comment: str) -> None:
    assert unexplained(f"{comment}\n```python\nx\n```") == [3]
    assert not unexplained("<!-- not run: needs a key -->\n```python\nx\n```\n```python\ny\n```")
