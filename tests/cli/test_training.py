"""`quintain training`: table, JSON, page and live page of training runs."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from quintain.cli.training_page import page
from quintain.train.report import TrainingLog, Update, read_updates, report
from tests.audit.page.browser import Browser, program
from tests.audit.page.test_chromium import CONTRAST
from tests.cli.conftest import Call
from tests.cli.program import started
from tests.train.groups import group

HOSTILE = "</style><script>window.broken = 1</script><img src=x onerror='window.broken = 1'>\x1b[31m"


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Logs of three seeds; the current folder is theirs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    for seed in range(3):
        with TrainingLog(f"seed-{seed}", seed=seed) as log:
            for step in range(40):
                write(log, step, score=(step + seed) / 50)
    return [tmp_path / f"seed-{seed}" for seed in range(3)]


def write(log: TrainingLog, step: int, *, score: float = 0.5, name: str = "polite") -> Update:
    """Logs an update with every kind of number; `name` stands for all that authors name."""
    fields: dict[str, Any] = {"level": name, "reward": name}
    trained = group([score, score / 2, None], versions=[(0, step // 2), (4, step)], turns=2, **fields)
    stale, dropped = group([0.5, 0.5], turns=4, **fields), group([None, 0.5], kept=False, **fields)
    return log.update([trained, dropped], step=step, stale=[stale], metrics={name: 1 / (step + 1)})


def test_table_shows_scores_with_intervals_over_the_runs(logs: list[Path], call: Call) -> None:
    ended = call("training", *logs)
    assert ended.status == 0, ended.err
    lines = ended.out.splitlines()
    assert lines[0].split()[:2] == ["step", "score"]
    thin = report({folder.name: read_updates(folder) for folder in logs}, most=15)
    curve = thin.curves["score/mean"]
    assert [int(line.split()[0]) for line in lines[2 : 2 + len(curve.steps)]] == curve.steps
    assert f"{curve.mean[-1]:.3f}   {curve.low[-1]:.3f} to {curve.high[-1]:.3f}" in lines[1 + len(curve.steps)]
    assert "runs: 3 with 120 updates" in lines
    assert "invalid episodes: 240 of 840, 28.6% (95 %: 25.6% to 31.7%)" in lines
    assert "warning: the score changed by" in ended.out


def test_json_is_the_whole_report(logs: list[Path], call: Call) -> None:
    found = json.loads(call("training", *logs, "--json").out)
    expected = report({folder.name: read_updates(folder) for folder in logs})
    assert found == json.loads(msgspec.json.encode(expected))
    assert found["curves"]["score/mean"]["steps"] == list(range(40))


def test_run_without_updates_is_reported(tmp_path: Path, call: Call) -> None:
    TrainingLog(tmp_path).close()
    assert call("training", tmp_path).out.startswith("runs: 1 with 0 updates\n")
    assert json.loads(call("training", tmp_path, "--json").out)["mean"] is None
    page(report({"a": []}))


def test_folders_of_one_name_are_different_runs(tmp_path: Path, call: Call) -> None:
    for place in ("a", "b"):
        with TrainingLog(tmp_path / place / "log", seed=ord(place)) as log:
            write(log, 0)
    found = json.loads(call("training", tmp_path / "a" / "log", tmp_path / "b" / "log", "--json").out)
    assert [*found["runs"]] == ["0-log", "1-log"]


def test_mistakes_are_named(logs: list[Path], tmp_path: Path, call: Call) -> None:
    ended = call("training", tmp_path)
    assert (ended.status, "expected the folder of a TrainingLog" in ended.err) == (2, True)
    ended = call("training", logs[0], "--follow", "--json")
    assert (ended.status, "give one of them" in ended.err) == (2, True)
    ended = call("training", logs[0], "--html", "missing/page.html")
    assert (ended.status, "cannot write the page 'missing/page.html'" in ended.err) == (2, True)


def test_hostile_names_cannot_control_the_terminal(tmp_path: Path, call: Call) -> None:
    with TrainingLog(tmp_path) as log:
        write(log, 0, name=HOSTILE)
    assert "\x1b" not in call("training", tmp_path).out


def test_page_follows_a_run_until_ctrl_c(logs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    html = tmp_path / "live.html"
    with TrainingLog(tmp_path / "more", seed=7) as log:
        write(log, 0)
        process = started("training", "more", "--html", html, "--follow", cwd=tmp_path)
        until(lambda: html.exists() and "step 0" in html.read_text())
        assert '<meta http-equiv="refresh" content="5">' in html.read_text()
        write(log, 1)
        until(lambda: "step 1" in html.read_text())
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, "Traceback" in err) == (130, False)
    assert out.count("runs: 1 with 1 update\n") == out.count("runs: 1 with 2 updates\n") == 1
    assert "refresh" not in html.read_text()
    assert not list(tmp_path.glob("*.new"))


def until(done: Callable[[], bool]) -> None:
    limit = time.monotonic() + 60
    while not done():
        assert time.monotonic() < limit, "it never came"
        time.sleep(0.02)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if program() is None:
        pytest.skip("Chromium is not installed: apt-get install chromium")
    with Browser() as one:
        one.resize(1200)
        yield one


def test_page_is_complete_and_silent(logs: list[Path], call: Call, tmp_path: Path, browser: Browser) -> None:
    call("training", *logs, "--html", "report.html")
    for scheme in ("light", "dark"):
        browser.like(scheme=scheme)
        browser.open(tmp_path / "report.html")
        assert browser.requests() == [(tmp_path / "report.html").as_uri()]
        assert browser.complaints() == []
        assert browser.run(CONTRAST) == []
    headings = "[...document.querySelectorAll('h2')].map(one => one.textContent)"
    parts = ["Score", "Invalid episodes", "Selection", "Staleness", "Tasks", "Rewards", "Trainer", "Work"]
    assert browser.run(headings) == parts
    assert browser.run("document.querySelectorAll('.curve').length") > len(parts)
    assert browser.run("[...document.querySelectorAll('path')].every(one => one.getTotalLength() > 0)")
    for width in (360, 720):
        browser.resize(width)
        assert browser.run("document.scrollingElement.scrollWidth") == width


def test_line_of_a_page_is_drawn_at_the_height_of_its_value() -> None:
    facts = {"seed": 0, "time": 0.0, "wall_s": 1.0, "scores": (0.0, 1.0), "counts": {}}
    values = (0.0, 10.0, 5.0)
    run = [
        msgspec.convert({**facts, "step": n, "version": n, "metrics": {"m": v}}, Update) for n, v in enumerate(values)
    ]
    drawn = (
        page(report({"a": run}))
        .partition("<h2>Trainer</h2>")[2]
        .partition('class="curve one" d="')[2]
        .partition('"')[0]
    )
    # The picture is 130 high and ends at 150; a tenth of the range is left free above and below.
    heights = [150 - 130 * (value + 1) / 12 for value in values]
    assert drawn == f"M56.0 {heights[0]:.1f} L343.0 {heights[1]:.1f} L630.0 {heights[2]:.1f}"


def test_hostile_names_are_inert_on_the_page(tmp_path: Path, call: Call, browser: Browser) -> None:
    with TrainingLog(tmp_path / "log") as log:
        for step in range(2):
            write(log, step, name=HOSTILE)
    call("training", tmp_path / "log", "--html", tmp_path / "page.html")
    browser.open(tmp_path / "page.html")
    assert browser.run("window.broken") is None
    assert browser.run("document.querySelectorAll('script, img').length") == 0
    assert browser.complaints() == []
    assert browser.run("document.body.textContent.includes('window.broken = 1')")


def test_policy_of_the_page_stops_scripts(logs: list[Path], call: Call, tmp_path: Path, browser: Browser) -> None:
    call("training", logs[0], "--html", "report.html")
    browser.open(tmp_path / "report.html")
    browser.run("document.body.setAttribute('onclick', 'window.broken = 1'); document.body.click()")
    assert browser.run("window.broken") is None
