"""The clients of OpenEnv, old and new, and TRL over them, drive a served environment."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from quintain.serve.episodes.secrets import packed
from tests.docs.test_docs import blocks
from tests.serve.clients.venvs import OPENENV, OPENENV_CORE, RUN_S, TRL, Venv, clean
from tests.serve.ors.confiding import named
from tests.serve.ors.test_secrets import ENV as CONFIDING
from tests.serve.serving import Served, serve

pytestmark = pytest.mark.slow

RELEASES = {"0.10": OPENENV, "0.3": OPENENV_CORE}
PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "serve-openenv.md"

Install = Callable[[Sequence[Sequence[str]]], Venv]


@pytest.mark.parametrize("release", RELEASES)
def test_openenv_clients_play_episodes(installed: Install, served: Served, release: str) -> None:
    facts = installed(RELEASES[release]).facts("openenv_sdk.py", served.url)
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
    result = tools["called"] if release == "0.3" else tools["called"]["result"]
    assert result == "The count is 2."
    assert "has ended" in tools["late"]
    assert tools["steps"] >= 2


def test_openenv_validator_passes(installed: Install, served: Served) -> None:
    """The command, as its users type it."""
    openenv = str(installed(OPENENV).folder / "bin" / "openenv")
    command = [openenv, "validate", "--url", f"{served.url}/openenv/counter", "--timeout", "30", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=RUN_S, env=clean())
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert (report["passed"], report["mode"]) == (True, "simulation")
    assert len(report["criteria"]) == 6
    assert all(one["passed"] for one in report["criteria"])


def test_openenv_graders_and_trainers_accept_the_server(installed: Install, served: Served) -> None:
    facts = installed(OPENENV).facts("openenv_newest.py", served.url, str(served.folder))
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


def test_openenv_clients_send_secrets_in_a_header(installed: Install, tmp_path: Path) -> None:
    with serve("env", folder=tmp_path, file=CONFIDING) as served:
        facts = installed(OPENENV).facts("openenv_confiding.py", served.url, packed({"KEY": "one"}))
        assert facts == {"generic": [named("one"), named("one"), "none"], "tools": [named("one"), named("one")]}


def test_trl_trains_over_ors(installed: Install, served: Served) -> None:
    """Two steps of GRPO over the class of TRL's documentation; its instances are used again."""
    seen = installed(TRL).facts("openenv_trainer.py", served.url, str(served.folder))
    assert seen["tools"] == ["add", "submit"]
    assert seen["rewards"] == [1.0, 0.0, 1.0, 0.0]
    for log in seen["log"]:
        assert (log["reward"], log["frac_reward_zero_std"], log["tools/failure_frequency"]) == (0.5, 0.0, 0.0)
        assert log["grad_norm"] > 0
    assert seen["late"].endswith("the episode is over")


def test_the_pages_blocks_for_the_client_work_when_pasted(installed: Install, tmp_path: Path) -> None:
    found = {block.title: block.code for block in blocks(PAGE.read_text()) if block.title}
    (tmp_path / "scale.py").write_text(found["scale.py"])
    with serve("env", folder=tmp_path, file=tmp_path / "scale.py") as scale:
        url = f"{scale.url}/openenv/scale"
        facts = installed(OPENENV).facts("openenv_page.py", url, found["episode.py"], found["balance.py"])
    assert facts["printed"] == [
        "On the scale lies a brick.",
        "['look', 'balance', 'answer']",
        "The scale moves. 1.0 True",
        "valid 2",
    ]
    assert facts["trained"] == [["It is a pebble.", 1.0], ["It is a brick.", 0.0], ["It is a boulder.", 0.0]]
