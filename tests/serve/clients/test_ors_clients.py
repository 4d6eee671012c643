"""The clients of the Open Reward Standard, as anybody installs them, on our server and on their own.

What a client sees of its own server it must see of ours. The differences are few, and each is a promise of ours: no
text is damaged, the end is an end, and last words are a tool.
"""

from __future__ import annotations

import hashlib
import sysconfig
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from quintain.record import read_traces
from tests.cli.program import quintain
from tests.docs.test_docs import blocks
from tests.serve.clients.venvs import INSPECT, OPENREWARD, ORS, TRL, Venv
from tests.serve.serving import Served, serve

pytestmark = pytest.mark.slow

Install = Callable[[Sequence[Sequence[str]]], Venv]
Facts = dict[str, Any]
PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "serve-ors.md"
TOOLS = ["add", "submit", "peek", "echo", "repeat", "source"]


def digests(names: Sequence[str]) -> dict[str, str]:
    """Returns the digests of modules in this process's standard library, which is also the server's."""
    folder = Path(sysconfig.get_path("stdlib"))
    return {name: hashlib.sha256((folder / name).read_text("utf-8").encode()).hexdigest() for name in names}


def check_discovery(seen: Facts) -> None:
    assert seen["splits"] == ["train", "validation", "test"]
    assert seen["tools"] == seen["openai"] == [*TOOLS, "answer"]
    assert (seen["num_tasks"], seen["tasks"]) == (5, 5)
    assert seen["task_is_listed"]
    assert seen["range_is_listed"]
    assert "400, message=" in seen["bad_split"]
    assert "Invalid split" in seen["bad_split"]
    assert "Invalid index" in seen["bad_index"]


def check_episode(seen: Facts) -> None:
    assert seen["prompt"] == "Be exact.Count to 3, then submit it."
    assert seen["task_tools"] == [*TOOLS, "answer"]
    assert [seen[name]["text"] for name in ("first", "default")] == ["The count is 2.", "The count is 3."]
    assert [seen[name]["reward"] for name in ("first", "default", "last")] == [None, None, 1.0]
    assert [seen[name]["finished"] for name in ("first", "default", "last")] == [False, False, True]
    assert seen["last"]["metadata"]["dev.quintain/validity"] == "valid"
    assert seen["bad_arguments"].startswith("ToolCallError: ")
    assert "Tool input validation error" in seen["bad_arguments"]
    assert "'subtract' is not a valid tool" in seen["unknown_tool"]
    assert seen["late"].startswith("ToolCallError: ")


def check_texts(seen: Facts) -> None:
    assert (seen["spaces"], seen["newlines"]) == (20_000, 20_000)
    assert all(seen["odd"])
    assert seen["large"] == hashlib.sha256(b"0123456789abcdef " * 300_000).hexdigest()
    assert len(seen["modules"]) > 100
    assert seen["modules"] == digests(list(seen["modules"]))


def test_ors_sdk(installed: Install, served: Served) -> None:
    seen = installed(ORS).facts("ors_sdk.py", served.url)
    check_discovery(seen["discovery"])
    check_episode(seen["episode"])
    check_texts(seen["texts"])
    assert seen["upper_case"] == ["train", "validation", "test"]
    assert "404" in seen["unknown_environment"]
    assert seen["wrong"]["prompt"] == "Be exact.Count to 2, then submit it."
    assert (seen["wrong"]["last"]["reward"], seen["wrong"]["last"]["finished"]) == (0.0, True)
    assert seen["many"]["rewards"] == [1.0] * 16


def test_openreward_sdk_plays_sessions(installed: Install, served: Served) -> None:
    seen = installed(OPENREWARD).facts("openreward_sdk.py", served.url)
    check_discovery(seen["discovery"])
    check_episode(seen["episode"])
    check_texts(seen["texts"])
    assert seen["discovery"]["environment_name"] == "counter"
    assert seen["episode"]["version"] == ["build_sha", "version"]
    assert seen["episode"]["roles"] == ["system", "user"]
    assert seen["episode"]["openai_messages"] == {"role": "user", "content": "Count to 3, then submit it."}
    assert seen["episode"]["terminal"] == "answer"
    assert seen["episode"]["score_group"].startswith("ScoreGroupUnsupported")
    assert seen["episode"]["late"].startswith("ToolCallError: episode_finished")
    assert seen["episode"]["unknown_tool"].startswith("ToolCallError: not_found")
    assert seen["episode"]["bad_arguments"].startswith("ToolCallError: input_validation")
    assert all("400, message=" in refused for refused in seen["refused"].values())
    assert seen["answered"]["final"] is True
    assert (seen["answered"]["last"]["reward"], seen["answered"]["last"]["finished"]) == (1.0, True)
    assert seen["answered"]["late"].startswith("ToolCallError: episode_finished")
    assert seen["many"]["rewards"] == [1.0] * 16


def alike(seen: Facts) -> Facts:
    """Returns the facts that must be equal on both servers."""
    discovery = {**seen["discovery"], "tools": sorted({*seen["discovery"]["tools"]} - {"answer"})}
    for name in ("schema", "openai", "anthropic", "bad_split", "bad_index"):
        discovery.pop(name, None)
    episode = {name: seen["episode"][name] for name in ("prompt", "first", "default", "last", "unknown_tool")}
    outputs = [episode[name] for name in ("first", "default", "last")] + [seen["wrong"]["last"]]
    for said in outputs:
        del said["metadata"]
    return {
        "discovery": discovery,
        "episode": episode,
        "wrong": seen["wrong"],
        "many": seen["many"]["rewards"],
        "newlines": seen["texts"]["newlines"],
        "odd": seen["texts"]["odd"],
    }


@pytest.mark.parametrize(
    ("steps", "sdk", "driver"), [(ORS, "ors", "ors_sdk.py"), (OPENREWARD, "openreward", "openreward_sdk.py")]
)
def test_a_client_sees_what_it_sees_at_home(
    installed: Install, served: Served, steps: Sequence[Sequence[str]], sdk: str, driver: str
) -> None:
    venv = installed(steps)
    with venv.reference(sdk) as url:
        home = venv.facts(driver, url)
    assert alike(venv.facts(driver, served.url)) == alike(home)
    assert home["texts"]["spaces"] < 20_000  # why ours escapes what a frame begins with


def test_inspect_evaluates_over_ors(installed: Install, served: Served) -> None:
    seen = installed(INSPECT).facts("inspect_bridge.py", served.url)
    assert (seen["status"], seen["errors"]) == ("success", [])
    assert seen["scores"] == [[1.0], [1.0], [0.0]]
    assert seen["finished"] == [True] * 3
    assert seen["asked"] == [f"Be exact.\nCount to {number}, then submit it." for number in (1, 2, 3)]
    assert seen["observed"] == [[f"The count is {number}.", "Handed in."] for number in (1, 2, 3)]


def test_trl_trains_over_ors(installed: Install, served: Served) -> None:
    """One step of GRPO: two tasks, two members each, of which one is right."""
    seen = installed(TRL).facts("trl_trainer.py", served.url)
    assert set(seen["tools"]) == {*TOOLS, "answer"}
    assert seen["rewards"] == [1.0, 0.0, 1.0, 0.0]
    assert seen["finished"] == [True] * 4
    assert seen["log"]["reward"] == 0.5
    assert seen["log"]["frac_reward_zero_std"] == 0.0
    assert seen["log"]["tools/failure_frequency"] == 0.0
    assert seen["log"]["grad_norm"] > 0
    assert seen["changed"]
    assert [one[-1]["dev.quintain/validity"] for one in seen["metadata"][1:]] == ["valid"] * 3
    assert "episode_finished" in seen["after_the_end"]


def test_trl_trains_on_rollouts_that_end_in_plain_words(installed: Install, tmp_path: Path) -> None:
    """Two steps of GRPO with a model that draws random bytes, on an environment whose tools end nothing."""
    with serve("letters", folder=tmp_path, options=("--out", str(tmp_path / "run"))) as server:
        seen = installed(TRL).facts("trl_plain_words.py", server.url)
    assert "A reply without a tool call is not delivered" in seen["tools"]["answer"]
    assert seen["unscored"] == [None] * 16  # what the reward function of TRL's specification returns for them
    assert seen["scores"] == [sum(letter in "aeiou" for letter in text) / max(1, len(text)) for text in seen["said"]]
    assert len(seen["log"]) == 2
    for step in seen["log"]:
        assert step["reward_std"] > 0
        assert step["loss"] != 0
        assert step["grad_norm"] > 0
    records = list(read_traces(tmp_path / "run" / "letters"))
    assert sorted(record.score or 0.0 for record in records) == sorted(seen["scores"])
    assert {record.reason for record in records} == {"the agent answered"}


@pytest.mark.parametrize(("steps", "sdk"), [(ORS, "ors"), (OPENREWARD, "openreward")])
def test_a_client_gets_the_score_of_plain_words(
    installed: Install, tmp_path: Path, steps: Sequence[Sequence[str]], sdk: str
) -> None:
    with serve("words", folder=tmp_path) as server:
        seen = installed(steps).facts("plain_words.py", sdk, server.url)
    assert "A reply without a tool call is not delivered" in seen["described"]
    assert (seen["answered"]["reward"], seen["answered"]["finished"]) == (1.0, True)
    assert seen["closed"]["response"]["reward"] == 0.0
    assert seen["closed"]["response"]["metadata"]["dev.quintain/validity"] == "valid"
    assert seen["closed"]["late"]


@pytest.mark.parametrize(
    ("name", "steps", "seen"),
    [
        ("session.py", ORS, {"printed": ["The lamp is red. ['press', 'answer']", "1.0"]}),
        ("train.py", TRL, {"steps": 1, "tools": ["answer", "press"], "prompts": 3}),
        ("evaluate.py", INSPECT, {"status": "success", "mean": pytest.approx(1 / 3)}),
    ],
)
def test_the_pages_blocks_for_clients_work_when_pasted(
    installed: Install, tmp_path: Path, name: str, steps: Sequence[Sequence[str]], seen: Facts
) -> None:
    found = {block.title: block.code for block in blocks(PAGE.read_text()) if block.title}
    (tmp_path / "panel.py").write_text(found["panel.py"])
    with serve("env", folder=tmp_path, file=tmp_path / "panel.py") as panel:
        assert installed(steps).facts("ors_page.py", panel.url, name, found[name], folder=tmp_path) == seen


@pytest.mark.parametrize(("steps", "sdk"), [(ORS, "ors"), (OPENREWARD, "openreward")])
def test_a_key_is_asked_for(installed: Install, tmp_path: Path, steps: Sequence[Sequence[str]], sdk: str) -> None:
    keys = tmp_path / "keys"
    made = quintain("keys", "add", keys, "trainer", "--role", "agent", cwd=tmp_path)
    key = made.stdout.split()[-1]
    with serve("counter", folder=tmp_path, options=("--keys", str(keys))) as server:
        seen = installed(steps).facts("keyed.py", sdk, server.url, key)
    assert (seen["right"]["reward"], seen["right"]["finished"]) == (1.0, True)
    assert seen["wrong"].startswith("AuthenticationError")
    assert seen["none"].startswith("AuthenticationError")
