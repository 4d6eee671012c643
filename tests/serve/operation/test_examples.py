"""The files that the page on production shows are those that lie beside it, and serve what they say."""

from __future__ import annotations

import contextlib
import fnmatch
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.serve.operation.raw import ask
from tests.serve.serving import SECONDS, environment

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
PAGE = (DOCS / "how-to" / "serve-in-production.md").read_text()
CONTAINER = (DOCS / "examples" / "Dockerfile").read_text()
UNIT = (DOCS / "examples" / "quintain.service").read_text()


def instructions() -> dict[str, str]:
    """Returns the arguments of each instruction of the container file; of repeated ones, the last."""
    plain = re.sub(r"^#.*\n", "", CONTAINER, flags=re.MULTILINE).replace("\\\n", "")
    return {word: rest.strip() for word, _, rest in (line.partition(" ") for line in plain.splitlines())}


def settings() -> dict[str, str]:
    """Returns the settings of the unit."""
    return {name: value for name, equal, value in (line.partition("=") for line in UNIT.splitlines()) if equal}


def health() -> list[str]:
    """The command that says whether a container is well."""
    words: list[str] = json.loads(instructions()["HEALTHCHECK"].partition("CMD ")[2])
    return words


class Machine(NamedTuple):
    """A folder that stands for the machine, and what is run on it.

    Attributes:
        root: The folder.
        command: What serves, from the example.
        key: A trainer's.
    """

    root: Path
    command: list[str]
    key: str

    @contextlib.contextmanager
    def serving(self) -> Generator[tuple[subprocess.Popen[str], int]]:
        """Yields the serving process and its port; ends the process afterwards."""
        process = subprocess.Popen(
            self.command, stdout=subprocess.PIPE, text=True, cwd=self.root / "srv", env=environment(self.root)
        )
        try:
            assert process.stdout
            yield process, int(process.stdout.readline().rpartition(":")[2])
        finally:
            process.kill()
            process.communicate(timeout=SECONDS)

    def ask(self, port: int, path: str, **body: object) -> dict[str, object]:
        status, _, said = ask(port, "POST", f"/v1/{path}", body=body, headers={"authorization": f"Bearer {self.key}"})
        assert status in {200, 201}, said
        answer: dict[str, object] = json.loads(said)
        return answer


@pytest.fixture(params=["container", "unit"])
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    """Prepares the machine as the page says; the command of the example, on any free port."""
    for folder in ("srv", "etc/quintain", "var/lib/quintain"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "srv" / "environment.py").write_text(PAGE.partition('title="count.py"\n')[2].partition("```")[0])
    words = json.loads(instructions()["CMD"]) if request.param == "container" else shlex.split(settings()["ExecStart"])
    program, *words = (re.sub(r"^/(?=srv|etc|var)", f"{tmp_path}/", word) for word in words)
    assert Path(program).name == "quintain"
    run = [sys.executable, "-m", "quintain"]
    words[words.index("--port") + 1] = "0"
    add = [*run, "keys", "add", words[words.index("--keys") + 1], "lab", "--role", "trainer"]
    key = subprocess.run(add, capture_output=True, text=True, check=True, env=environment(tmp_path)).stdout.strip()
    return Machine(tmp_path, [*run, *words], key)


def is_well(port: int) -> bool:
    """Returns the health that a container engine finds, although its settings name a proxy."""
    words = [word.replace(f":{instructions()['EXPOSE']}/", f":{port}/") for word in health()]
    assert words[0] == "python"
    asked = subprocess.run(
        [sys.executable, *words[1:]],
        env={**os.environ, "http_proxy": "http://127.0.0.1:9"},
        capture_output=True,
        check=False,
        timeout=SECONDS,
    )
    return asked.returncode == 0


@pytest.mark.slow
def test_example_commands_serve_and_resume_after_a_restart(machine: Machine) -> None:
    with machine.serving() as (process, port):
        assert is_well(port)
        episode = machine.ask(port, "episodes", environment="count")["id"]
        machine.ask(port, f"episodes/{episode}/calls", name="add", arguments={"by": 2})
        process.terminate()
        assert process.wait(SECONDS) == 0
        assert not is_well(port)
    with machine.serving() as (_, port):
        machine.ask(port, f"episodes/{episode}/calls", name="add", arguments={"by": 1})
        assert machine.ask(port, f"episodes/{episode}/answer", text="Done.")["reward"] == 1.0


def test_the_container_file_is_the_one_of_the_page() -> None:
    assert f"```dockerfile\n{CONTAINER}```" in PAGE


def test_the_container_file_agrees_with_itself() -> None:
    image = instructions()
    words = json.loads(image["CMD"])
    given = dict(zip(words[3::2], words[4::2], strict=True))
    assert given["--port"] == image["EXPOSE"]
    assert f":{image['EXPOSE']}/readyz" in health()[2]
    assert Path(given["--journal"]).is_relative_to(image["VOLUME"])
    assert Path(image["ENV"].partition("QUINTAIN_CACHE=")[2]).is_relative_to(image["VOLUME"])
    (keys,) = re.findall(r"-v \./keys:(\S+):ro", PAGE)
    assert Path(given["--keys"]) == Path(keys) / "keys.jsonl"
    assert f"-v served:{image['VOLUME']} " in PAGE
    user, volume = image["USER"], image["VOLUME"]
    (number,) = re.findall(rf"useradd .*--uid (\d+) .* {user} && install -d -o {user} -m 700 {volume}\n", CONTAINER)
    assert f"chown {number} keys keys/keys.jsonl\n" in PAGE


def test_the_container_has_the_environment_and_our_wheel_and_no_key() -> None:
    about = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    image = instructions()
    environment_file, wheel, target = image["COPY"].split()
    assert target == f"{image['WORKDIR']}/"
    beside = ["Dockerfile", "environment.py", "keys", f"{about['name']}-{about['version']}-py3-none-any.whl"]
    assert fnmatch.filter(beside, environment_file) == [beside[1]]
    assert fnmatch.filter(beside, wheel) == [beside[3]]
    assert f'"$(echo {target}{wheel})[serve]"' in image["RUN"]
    assert json.loads(image["CMD"])[2] == f"{environment_file}:env"


def test_the_unit_keeps_what_it_writes_where_it_may() -> None:
    unit = settings()
    words = shlex.split(unit["ExecStart"])
    assert words[words.index("--journal") + 1] == f"/var/lib/{unit['StateDirectory']}"
    assert unit["Environment"] == f"QUINTAIN_CACHE=/var/cache/{unit['CacheDirectory']}"
    assert f"useradd --system {unit['User']}\n" in PAGE
    assert f"{words[0]} keys add {words[words.index('--keys') + 1]} " in PAGE


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is of systemd, which is not here")
def test_systemd_understands_the_unit_and_finds_it_well_shut(tmp_path: Path) -> None:
    unit = tmp_path / "quintain.service"
    unit.write_text(UNIT.replace("/opt/quintain/bin/quintain", sys.executable))
    for asked in (["verify"], ["security", "--offline=true", "--threshold=40"]):
        said = subprocess.run(["systemd-analyze", *asked, str(unit)], capture_output=True, text=True, check=False)
        assert said.returncode == 0, said.stdout + said.stderr
