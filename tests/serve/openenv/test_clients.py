"""The clients of OpenEnv, old and new, in environments of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.docs.test_docs import blocks
from tests.serve.serving import Served, serve

pytestmark = pytest.mark.slow

DRIVERS = Path(__file__).with_name("drivers")
RELEASES = {"0.10": "openenv==0.10.0", "0.3": "openenv-core==0.3.0"}
SECONDS = 600

Driven = Callable[..., dict[str, Any]]


@pytest.fixture(scope="session")
def driven(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Driven:
    """Runs a driver with a release of the client; what it saw."""
    made: dict[str, Path] = {}

    def python(release: str) -> Path:
        if release not in made:
            folder = tmp_path_factory.mktemp("client")
            subprocess.run([sys.executable, "-m", "venv", folder], check=True, timeout=SECONDS)
            made[release] = folder / "bin" / "python"
            install = [str(made[release]), "-m", "pip", "install", "--quiet", RELEASES[release]]
            subprocess.run(install, check=True, timeout=SECONDS)
        return made[release]

    def run(release: str, driver: str, *arguments: str) -> dict[str, Any]:
        command = [str(python(release)), str(DRIVERS / driver), served.url, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        assert done.returncode == 0, f"{done.stdout}{done.stderr}"
        (facts,) = [line for line in done.stdout.splitlines() if line.startswith("FACTS ")]
        found: dict[str, Any] = json.loads(facts.removeprefix("FACTS "))
        return found

    return run


@pytest.mark.parametrize("release", RELEASES)
def test_its_clients_play_episodes(driven: Driven, release: str) -> None:
    facts = driven(release, "generic.py")
    one = facts["episode"]
    assert "reset begins one" in one["early"]
    assert one["begun"]["observation"]["result"].endswith("Count to 3, then submit it.")
    assert (one["begun"]["reward"], one["begun"]["done"]) == (None, False)
    assert one["tools"][:2] == ["add", "submit"]
    assert one["first"]["observation"]["result"] == "The count is 3."
    assert one["mistake"]["observation"]["error"]["error_type"] == "invalid_args"
    assert [one[name]["reward"] for name in ("first", "mistake", "last")] == [0.0, 0.0, 1.0]
    assert (one["last"]["done"], one["last"]["observation"]["metadata"]["dev.quintain/validity"]) == (True, "valid")
    assert (one["state"]["episode_id"], one["state"]["step_count"]) == ("mine", 4)
    assert "has ended" in one["late"]

    assert (facts["words"]["reward"], facts["words"]["done"]) == (1.0, True)

    tools = facts["tools"]
    assert (tools["listed"][:2], tools["schema"]["properties"]["by"]["maximum"]) == (["add", "submit"], 100)
    assert tools["begun"].endswith("Count to 2, then submit it.")
    told = tools["called"] if release == "0.3" else tools["called"]["result"]
    assert told == "The count is 2."
    assert "has ended" in tools["late"]
    assert tools["steps"] >= 2


def test_what_the_newest_has_beyond_its_clients(driven: Driven, served: Served) -> None:
    facts = driven("0.10", "newest.py", str(served.folder))
    assert len(facts["validated"]) == 6
    assert all(facts["validated"].values())
    for grades in facts["graded"]:
        assert [status for status, *_ in grades.values()] == ["pass"] * 3, grades
    assert facts["beside"] == [f"The count is {3 * number}." for number in range(20)]
    assert facts["child"] == ["5", "0"]

    late = facts["timed_out"]
    assert late["given_up"].startswith("TimeoutError")
    assert "reset begins one" in late["next_step"]
    assert (late["again"], late["works"]) == (False, "Marked 1.")
    assert served.gates.entered("after_newest") == 0

    assert [facts["attached"][name] for name in ("stepped", "called")] == ["The count is 1.", "The count is 2."]
    assert (facts["attached"]["reward"], facts["attached"]["done"]) == (1.0, True)
    assert "has ended" in facts["attached"]["late"]

    assert [one["reward"] for one in facts["wrapped"]] == [1.0, 0.0, 1.0, 0.0]
    assert [one["unfinished"] for one in facts["wrapped"]] == [None] * 4
    assert all(one["late"].endswith("the episode is over") for one in facts["wrapped"])


def test_the_pages_blocks_for_the_client_work_when_pasted(driven: Driven, served: Served, tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "serve-openenv.md").read_text()
    found = {block.title: block.code for block in blocks(page) if block.title}
    (tmp_path / "scale.py").write_text(found["scale.py"])
    with serve("env", folder=tmp_path, file=tmp_path / "scale.py") as scale:
        facts = driven("0.10", "page.py", f"{scale.url}/openenv/scale", found["episode.py"], found["balance.py"])
    assert facts["printed"] == [
        "On the scale lies a brick.",
        "['look', 'balance']",
        "The scale moves. 1.0 True",
        "valid 2",
    ]
    assert facts["trained"] == [["It is a pebble.", 1.0], ["It is a brick.", 0.0], ["It is a boulder.", 0.0]]
