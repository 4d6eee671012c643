"""The studio in a browser: a run is opened, filtered, read and saved, with keys alone; hostile texts stay texts."""

from __future__ import annotations

import asyncio
import csv
import json
import signal
import statistics
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from quintain import plugins
from quintain.changes import shown
from quintain.record import read_traces
from quintain.studio.watch import watch
from quintain.trace import Trace
from tests.cli.program import command
from tests.studio.cases import COUNTED, ODD, TRACES, WHERE, WRONG
from tests.studio.runs import HOSTILE, began, failed, line, rewritten, trace, turned, write
from tests.studio.studio import AXE, SECONDS, Reading, missing, running, started
from tests.studio.test_reports import report

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(missing()), reason=missing() or "never")]

ROWS = "document.querySelectorAll('.scroller .line').length"
PANEL = "document.querySelector('.panel')"
COUNT = "document.querySelector('[role=status]')?.textContent"
HEADING = "document.querySelector('h1')?.textContent"
INERT = "window.broken === undefined && document.querySelectorAll('img, iframe, a[href^=javascript]').length === 0"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("studio")
    write(made / "runs" / "a run", TRACES, ODD + b"torn")
    sales = command("run", "sales", "--tasks", "2", "--agent", "oracle", "-q", "--out", made / "runs" / "sales")
    subprocess.run(sales, check=True, capture_output=True)
    return made


@pytest.fixture(scope="module")
def address(home: Path) -> Iterator[str]:
    with started(home / "runs", home) as url:
        yield url


def test_ctrl_c_ends_the_studio(home: Path, tmp_path: Path) -> None:
    with running(home / "runs", tmp_path) as (process, _):
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == 130


@pytest.fixture(scope="module")
def one(address: str) -> Iterator[Reading]:
    with Reading() as browser:
        browser.resize(1000, 400)
        browser.show(address)
        browser.until("document.querySelectorAll('table.runs tbody tr').length")
        yield browser


@pytest.fixture
def browser(one: Reading) -> Reading:
    """Shows the table of the run."""
    one.run("location.hash = '#/a%20run/episodes'")
    one.until(f"{COUNT} === '{COUNTED} of {COUNTED}'")
    return one


def test_filters_leave_the_episodes_that_hold(browser: Reading) -> None:
    found = {}
    for where, _ in WHERE:
        browser.run(f"location.hash = '#/a%20run/episodes?where=' + encodeURIComponent({json.dumps(where)})")
        browser.until(f"document.querySelector('input').value === {json.dumps(where)}")
        browser.until(f"!{COUNT}.includes('searching')")
        found[where] = browser.run(COUNT)
    assert found == {
        where: f"{sum(map(holds, [*TRACES, trace('odd', turns=0)]))} of {COUNTED}" for where, holds in WHERE
    }
    for wrong, words in WRONG:
        browser.run(f"location.hash = '#/a%20run/episodes?where=' + encodeURIComponent({wrong!r})")
        browser.until(f"document.querySelector('[role=alert]')?.textContent.includes({words!r})")


def test_a_run_is_read_with_keys_alone(browser: Reading) -> None:
    browser.press("f")
    browser.until("document.activeElement.matches('input')")
    browser.on(lambda page: page.keyboard.insert_text("score<1 level:easy"))
    browser.press("Enter")
    browser.until(f"{COUNT} === '40 of {COUNTED}'")
    browser.run("location.hash += '&sort=-turns'")
    browser.until("document.querySelector('[aria-sort=descending]')?.textContent.startsWith('turns')")
    browser.press("j", "j", "Enter")
    browser.until(f"{HEADING} === 'lend 2 member 2'")
    browser.press("J")
    browser.until(f"{HEADING} === 'lend 3 member 2'")
    browser.press("K", "K")
    browser.until(f"{HEADING} === 'lend 1 member 2'")
    browser.press("]")
    browser.until(f"{HEADING} === 'lend 1 member 3'")
    assert browser.run("document.querySelectorAll('section.turn').length") == 33
    browser.press("j", "j")
    browser.until("document.activeElement.id === 't1'")
    browser.press("n")
    browser.until("document.activeElement.id === 't2'")
    browser.press("g", "g")
    browser.until("document.querySelectorAll('.sides th').length === 4")
    assert "← here the scores part most" in browser.run("document.querySelector('.tree').textContent")
    assert "mean 0.5 ± 0.228" in browser.run("document.querySelector('.tree').textContent")
    marked = browser.run("[...document.querySelectorAll('.sides mark')].map(one => one.textContent)")
    assert set(marked) == {"1", "3"}  # Who calls; a 2 is in the call of the first member, too.
    for by, words in (("replies", "fine · search"), ("worlds", "b after search")):
        browser.press("b")
        browser.until(f"document.querySelector('[aria-current=true]')?.textContent === 'by {by}'")
        assert words in browser.run("document.querySelector('.tree').textContent")
    browser.press("g", "e")
    browser.until(f"{COUNT} === '{COUNTED} of {COUNTED}'")
    browser.until("document.activeElement.getAttribute('role') === 'grid'")
    browser.press("?")
    assert browser.run("document.querySelector('dialog').open")
    browser.press("Escape")
    browser.until("!document.querySelector('dialog').open")


def test_rows_are_sorted_with_those_without_a_value_last(browser: Reading, home: Path) -> None:
    scores = {"a": 0.5, "b": None, "c": -1.0, "d": 0.0, "e": -0.25, "f": 1.0, "g": 0.0}
    write(home / "runs" / "sorted", [trace(task, score=score) for task, score in scores.items()])
    found = "[...document.querySelectorAll('.scroller .line a')].map(one => one.textContent).join('')"
    for sort, order in (("score", "cedgafb"), ("-score", "fadgecb"), ("-task", "gfedcba"), ("turns", "abcdefg")):
        browser.run(f"location.hash = '#/sorted/episodes?sort={sort}'")
        browser.until(f"{found} === '{order}'")


def test_an_address_leads_to_a_turn(browser: Reading) -> None:
    browser.run("location.hash = '#/a%20run/e/lend%205/3?t=30'")
    browser.until("document.activeElement.id === 't30'")
    top = "document.activeElement.getBoundingClientRect().top"
    browser.until(
        f"Math.abs({top}) < 8 || {top} < innerHeight && scrollY + innerHeight >= document.body.scrollHeight - 8"
    )


def test_a_jump_is_right_in_each_frame(browser: Reading, home: Path) -> None:
    write(home / "runs" / "long", [trace("long", turns=300, say="twelve words " * 90)])
    browser.run("location.hash = '#/long/e/long/0'")
    browser.until("document.querySelectorAll('section.turn').length === 300")
    for target in (200, 75):  # The first turns of blocks: the block before is not in the view, but drawn.
        browser.run(f"""(window.tops = [], requestAnimationFrame(function look() {{
            const id = document.activeElement.id;
            if (id === 't{target}') tops.push(Math.abs(document.activeElement.getBoundingClientRect().top));
            if (tops.length < 60) requestAnimationFrame(look);
        }}), 0)""")
        browser.run(f"location.hash = '#/long/e/long/0?t={target}'")
        browser.until("tops.length === 60")
        assert browser.run("Math.max(...tops)") <= 4
        time.sleep(1)


def test_the_panel_shows_what_a_replay_finds(browser: Reading, home: Path) -> None:
    played = next(iter(read_traces(home / "runs" / "sales")))
    env = plugins.environment("sales")
    seen = asyncio.run(watch(env, env.task("test", played.task), played)).steps
    (turn, _), changes = max(seen.items(), key=lambda one: len(one[1]))
    browser.run(f"location.hash = '#/sales/e/{played.task}/0?t={turn}'")
    browser.until(f"document.activeElement.id === 't{turn}'")
    browser.press("d")
    browser.until(f"{PANEL}.querySelectorAll('dd').length === {len(changes)}")
    words = browser.run(f"{PANEL}.textContent")
    assert all(path.rpartition(".")[2] in words and shown(after) in words for path, _, after in changes)
    browser.press("k")
    browser.until(f"{PANEL}.textContent.includes('turn {turn - 1}')")
    assert browser.run(f"{PANEL}.textContent.includes('The same world')") == (not seen[turn - 1, 0])
    browser.press("w")
    browser.until(f"{PANEL}.textContent.includes('full marks')")
    browser.press("w")
    browser.until(f"!{PANEL}")


def test_the_context_of_a_turn_is_that_of_the_record(browser: Reading) -> None:
    made = rewritten()
    browser.run(f"location.hash = '#/a%20run/e/{made.task}/0?t=0'")
    browser.until("document.activeElement.id === 't0'")
    browser.press("v")
    for turn in range(len(made.turns)):
        browser.until(f"{PANEL}?.textContent.includes('turn {turn}')")
        said = browser.run("[...document.querySelectorAll('.heard:not(.dropped)')].map(e => e.textContent)")
        wanted = [[one.text, *(call.arguments for call in one.calls)] for one in made.context(turn)]
        assert [all(word in words for word in one) for one, words in zip(wanted, said, strict=True)] == [True] * len(
            said
        )
        browser.press("j")
    assert browser.run("document.querySelectorAll('.heard.dropped').length") == 5
    line = "context rewritten: 1 messages kept, 5 dropped"
    assert browser.run("document.querySelector('#t2 .rewritten').textContent") == line


def test_lanes_lead_to_a_turn(browser: Reading) -> None:
    browser.run("location.hash = '#/a%20run/e/lend%205/3'")
    browser.until("document.querySelectorAll('section.turn').length === 33")
    browser.run("document.querySelector('[role=slider]').focus()")
    browser.press("]", "]", "ArrowRight", "[")
    said = "document.activeElement.getAttribute('aria-valuetext')"
    browser.until(f"{said} === 'turn 2: 1 call, changed the world'")
    browser.press("End", "Enter")
    browser.until("document.activeElement.id === 't32'")
    for measure in ("seconds", "logprob", "least logprob", "tokens"):
        browser.press("l")
        browser.until(f"[...document.querySelectorAll('.lanes svg text')].some(e => e.textContent === '{measure}')")
    browser.run("document.querySelector('.lanes summary').click()")
    browser.until("document.querySelectorAll('.lanes tbody tr').length === 33")


def test_a_run_whose_environment_is_unknown_says_so(browser: Reading) -> None:
    browser.run("location.hash = '#/a%20run/e/lend%205/1?t=1'")
    browser.until("document.activeElement.id === 't1'")
    browser.press("d")
    browser.until(f"{PANEL}.textContent.includes('quintain studio RUNS --env')")
    browser.press("w")
    browser.until(f"{PANEL}.textContent.includes('how these make the score is not known')")


def test_hostile_texts_are_inert_and_visible(browser: Reading) -> None:
    browser.until(ROWS)
    assert browser.run(INERT)
    browser.run(f"location.hash = '#/a%20run/e/' + encodeURIComponent({HOSTILE!r}) + '/0'")
    browser.until("document.querySelectorAll('section.turn').length")
    assert browser.run(INERT)
    shown = browser.run("document.body.textContent")
    assert "</script><img src=x onerror='window.broken = 1'>" in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert {"[U+001B]", "[U+202E]", "[U+200B]"} <= {
        *browser.run("[...document.querySelectorAll('.unseen')].map(e => e.textContent)")
    }
    folded = (
        "!document.querySelector('.rest[hidden=until-found] .unseen').checkVisibility({contentVisibilityAuto: true})"
    )
    assert browser.run(folded)
    before = browser.run("document.querySelectorAll('.rest[hidden]').length")
    browser.run("document.querySelector('.fold').click()")
    browser.until(f"document.querySelectorAll('.rest[hidden]').length === {before - 1}")


def test_an_episode_that_cannot_be_drawn_is_named(browser: Reading) -> None:
    browser.run("location.hash = '#/a%20run/e/odd/0'")
    browser.until("document.querySelector('[role=alert]')?.textContent.includes('cannot be drawn')")
    browser.run("location.hash = '#/a%20run/e/broken/0'")
    browser.until(f"{HEADING} === 'broken member 0'")


def test_a_failure_names_its_component(browser: Reading) -> None:
    browser.run("location.hash = '#/a%20run/e/broken/0'")
    browser.until(
        "document.querySelector('.failure')?.textContent.includes('quintain:tool_bug of component S, the state')"
    )


def test_a_saved_episode_opens_from_disk(browser: Reading, home: Path, address: str) -> None:
    labels = {"task": "lend 5", "member": 2, "owner": "verifier", "why": "graded twice"}
    (home / "runs" / "a run" / "labels.jsonl").write_text(json.dumps(labels) + "\n")
    browser.run("location.hash = '#/a%20run/episodes?where=' + encodeURIComponent('task:\"lend 5\" member>=2')")
    browser.until(f"{COUNT} === '2 of {COUNTED}'")
    link = browser.until("document.querySelector('a[download]')?.href")
    cookie = browser.send("Network.getCookies", urls=[link])["cookies"][0]
    request = urllib.request.Request(link, headers={"Cookie": f"{cookie['name']}={cookie['value']}"})
    with urllib.request.urlopen(request) as answer:
        (home / "saved.html").write_bytes(answer.read())
    assert quiet(browser)
    browser.open(home / "saved.html")
    browser.until("document.querySelectorAll('section.turn').length === 23")
    assert browser.run(HEADING) == "lend 5 member 2"
    assert "verifier labels: graded twice" in browser.run("document.querySelector('main').innerText")
    browser.press("j", "n")
    browser.until("document.activeElement.id === 't1'")
    browser.press("d")
    browser.until(f"{PANEL}.textContent.includes('does not hold')")
    browser.press("J")
    browser.until(f"{HEADING} === 'lend 5 member 3'")
    assert browser.requests() == [(home / "saved.html").as_uri()]
    assert browser.complaints() == []
    browser.events.clear()
    browser.show(address)
    browser.until("document.querySelector('tbody tr')")


def test_a_field_of_a_label_is_a_term_of_the_filter(browser: Reading, home: Path, address: str) -> None:
    (home / "runs" / "a run" / "labels").mkdir()
    rows = [{"task": "lend 5", "member": member, "grade": member / 4, "word": f"w{member}"} for member in range(3)]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (home / "runs" / "a run" / "labels" / "judge.jsonl").write_text(lines)
    browser.show(address)
    browser.until("document.querySelector('table.runs tbody tr')")
    for where, rows_left in (("label.judge.grade<0.5", 2), ("label.judge.word:w2", 1), ("-label.judge.grade:none", 3)):
        browser.run(f"location.hash = '#/a%20run/episodes?where=' + encodeURIComponent({where!r})")
        browser.until(f"{COUNT} === '{rows_left} of {COUNTED}'")


def test_a_file_without_parts_says_so(browser: Reading, home: Path, address: str) -> None:
    out, parts = home / "without.html", "reasons,prompts,names"
    arguments = ["--format", "html", "--where", 'task:"lend 5" member=2', "--without", parts, "--canary", "canary 7"]
    subprocess.run(
        command("export", home / "runs" / "a run", *arguments, "--out", out), check=True, capture_output=True
    )
    browser.open(out)
    browser.until("document.querySelectorAll('section.turn').length === 23")
    shown = browser.run("document.body.innerText")
    assert "Left out: reasons, prompts, names." in shown
    assert "canary 7" in shown
    assert "(left out)" in shown
    assert browser.complaints() == []
    browser.events.clear()
    browser.show(address)
    browser.until("document.querySelector('tbody tr')")


def quiet(browser: Reading) -> bool:
    """True if no screen loaded anything from elsewhere, and the policy refused nothing."""
    hosts = {url.split("/")[2] for url in browser.requests() if not url.startswith("data:")}
    # The browser notes each answer that is an error, such as that of a replay that is not allowed.
    complaints = [said for said in browser.complaints() if "409" not in str(said)]
    return hosts == {browser.run("location.host")} and complaints == []


def test_rows_that_the_filter_leaves_are_saved_as_csv(browser: Reading, tmp_path: Path) -> None:
    browser.send("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    browser.run("location.hash = '#/a%20run/episodes?where=score%3D0.75%20turns%3E%3D10'")
    wanted = [one for one in TRACES if one.score == 0.75 and len(one.turns) >= 10]
    browser.until(f"{COUNT}?.startsWith('{len(wanted)} of')")
    browser.run("[...document.querySelectorAll('button')].find(one => one.textContent === 'save as CSV').click()")
    until = time.monotonic() + SECONDS
    while not (tmp_path / "a run.csv").exists():
        assert time.monotonic() < until
        time.sleep(0.05)
    rows = list(csv.DictReader((tmp_path / "a run.csv").read_text("utf-8").splitlines()))
    assert [(one["task"], one["member"], one["score"], one["turns"]) for one in rows] == [
        (one.task, str(one.member), "0.75", str(len(one.turns))) for one in wanted
    ]
    assert {(one["tag.level"], one["tool"], one["total_s"]) for one in rows} == {("easy", "search, update", "1.5")}


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed: make web")
@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_screens_are_accessible(browser: Reading, scheme: str) -> None:
    browser.like(scheme=scheme)
    found = {}
    screens = ("#/", "#/a%20run/episodes?where=score", "#/a%20run/e/broken/0", "#/a%20run/g/lend%205")
    for screen in screens:
        browser.run(f"location.hash = {screen!r}")
        browser.until("document.querySelector('tbody tr, .scroller .line, [role=alert], section.turn, .sides')")
        found[screen] = browser.violations()
    browser.run("location.hash = '#/a%20run/e/rewritten/0'")
    browser.until("document.querySelector('.lanes summary')")
    browser.run("document.querySelector('.lanes summary').click()")
    for key in "dwv":
        browser.press(key)
        browser.until("document.querySelector('.panel')")
        found[key] = browser.violations()
    assert found == {screen: [] for screen in found}
    browser.like()


def test_two_runs_are_compared_by_task_and_member(browser: Reading, home: Path) -> None:
    better = [trace(f"lend {n}", m, score=1.0) for n in range(10) for m in range(4)]
    write(home / "runs" / "later", [*better, trace("only here"), failed("broken")])
    browser.run("location.hash = '#/'")
    browser.until("document.querySelectorAll('table.runs tbody tr').length >= 3")
    names: list[str] = browser.run("[...document.querySelectorAll('table.runs th a')].map(one => one.textContent)")
    for name in ("a run", "later"):
        browser.press(*["k"] * len(names), *["j"] * names.index(name), "x")
        browser.until(f"document.querySelector('tr.current a').textContent === '{name}'")
    browser.until("document.body.textContent.includes('compare a run → later')")
    assert not AXE.exists() or browser.violations() == []
    browser.press("c")
    browser.until("document.querySelectorAll('tbody tr').length === 10")
    said = browser.run("document.querySelector('main').textContent")
    assert "+0.5" in said  # Scores 0, 0.25, 0.75 and 1 became 1.
    assert "0.5 to 0.5" in said
    missing = (
        len(TRACES) - 40 - 1 + 1 + 1
    )  # Those without a partner in the first run, one unreadable, one in the second.
    assert f"30 better0 worse10 same1 without a score in one{missing} in one run only" in said
    assert not AXE.exists() or browser.violations() == []
    rows = (
        "[...document.querySelectorAll('tbody tr')].map(one => [...one.cells].map(cell => cell.textContent).join(' '))"
    )
    for by, lines in (
        ("tag", ['level:"easy" 0.375 1 0.625 20', 'level:"hard" 0.625 1 0.375 20']),
        ("tool", ["search 0.5 1 0.5 40", "update 0.5 1 0.5 40"]),
        ("phase", []),
        ("shape", ["done 0.75 0 -0.75 40"]),
    ):
        browser.press("b")
        browser.until(f"document.querySelector('[aria-current=true]')?.textContent === 'by {by}'")
        assert browser.run(rows) == lines
    assert not AXE.exists() or browser.violations() == []
    browser.press("Enter")
    browser.until(f"{COUNT} === '0 of 42'")  # None of the second run failed in that way.
    browser.run("history.back()")
    browser.until(f"{rows}.length === 1")
    browser.press("b", "j", "Enter")
    browser.until("document.querySelectorAll('.sides thead th').length === 8")
    heads = browser.run("[...document.querySelectorAll('.sides thead th')].map(one => one.textContent)")
    assert [head.partition("score")[0] for head in heads[:3]] == ["a runmember 0", "latermember 0", "a runmember 1"]
    assert not AXE.exists() or browser.violations() == []
    browser.press("Escape")
    browser.until("document.querySelectorAll('tbody tr').length === 10")
    browser.press("x")
    browser.until("document.querySelector('h1')?.textContent === 'later → a run'")
    assert "-0.5" in browser.run("document.querySelector('main').textContent")


def test_curves_are_means_by_version(browser: Reading, home: Path) -> None:
    made = [versioned(f"t{n}", m, version=v) for v in (3, 4, 9) for n in range(2) for m in range(4)]
    write(home / "runs" / "trained", [*made, failed("broken")])  # The failed one is of version 0.
    browser.run("location.hash = '#/trained/episodes'")
    browser.until(f"{COUNT} === '{len(made) + 1} of {len(made) + 1}'")
    browser.press("g", "c")
    browser.until("document.querySelectorAll('.curves figure').length > 4")
    browser.run("document.querySelector('main > details > summary').click()")
    browser.until("document.querySelectorAll('tbody tr').length === 4")
    cells = (
        "[...document.querySelectorAll('tbody tr')].map(row => [...row.children].slice(0, 3).map(e => e.textContent))"
    )
    names = browser.run("[...document.querySelectorAll('figcaption')].map(one => one.firstChild.data)")
    assert {"failed: component S", "episodes with search", "episodes with update"} <= {*names}
    wanted = [["0", "1", "\u2013"]]
    for version in (3, 4, 9):
        scores = [one.score or 0 for one in made if one.turns[0].reply.policy_version == version]
        wanted.append([str(version), "8", f"{round(statistics.mean(scores), 3):g}"])
    assert browser.run(cells) == wanted
    assert not AXE.exists() or browser.violations() == []
    browser.run("document.querySelector('tbody tr:nth-child(3) a').click()")
    browser.until(f"{COUNT} === '8 of {len(made) + 1}'")
    browser.run("location.hash = '#/trained/curves?x=episode'")
    browser.until(f"document.querySelector('main').textContent.includes('{len(made) + 1} points')")


def versioned(task: str, member: int, *, version: int) -> Trace:
    """Returns an episode whose replies are of one version of the policy; later versions score more."""
    made = trace(f"{task} at {version}", member, score=min(1.0, version * (member + 1) / 36))
    made.turns = [
        msgspec.structs.replace(one, reply=msgspec.structs.replace(one.reply, policy_version=version))
        for one in made.turns
    ]
    return made


def test_an_episode_in_play_is_watched_until_its_end(browser: Reading, home: Path) -> None:
    made, other = trace("now", turns=40), trace("waits")
    now = time.time()

    def append(*lines: bytes) -> None:
        with (home / "runs" / "a run" / "live.jsonl").open("ab") as file:
            file.write(b"".join(lines))

    append(began(made, now), began(other, now - 50), *(turned(made, n, now + n / 100) for n in range(30)))
    browser.press("g", "l")
    browser.until("document.querySelectorAll('tbody tr').length === 2")
    assert "← longest" in browser.run("document.querySelector('tbody tr').textContent")
    assert not AXE.exists() or browser.violations() == []
    browser.press("j", "Enter")
    browser.until("document.querySelectorAll('section.turn').length === 30")
    at_end = "Math.abs(innerHeight + scrollY - document.documentElement.scrollHeight) < 150"
    browser.until(at_end)
    append(turned(made, 30, now + 1))
    browser.until("document.querySelectorAll('section.turn').length === 31")
    browser.until(at_end)
    browser.run("scrollTo(0, 0)")
    append(turned(made, 31, now + 2))
    browser.until("document.querySelectorAll('section.turn').length === 32")
    assert browser.run("scrollY") == 0
    assert not AXE.exists() or browser.violations() == []
    append(b'{"ended":["now",0,0]}\n')
    browser.until("document.querySelector('[role=status]').textContent === 'not in play any more'")
    browser.press("g", "l")
    browser.until("document.querySelectorAll('tbody tr').length === 1")
    (home / "runs" / "a run" / "live.jsonl").write_bytes(b"")
    browser.until("document.body.textContent.includes('Nothing is in play')")


def threaded() -> Trace:
    """Returns a fork whose second turn is of another thread."""
    made = trace("one", 1, turns=3)
    made.forked = ("one", 0, 0, 2)
    made.turns[1] = msgspec.structs.replace(made.turns[1], thread=1, role="user")
    return made


def test_reports_of_other_programs_and_marks_are_shown(browser: Reading, home: Path) -> None:
    folder = write(home / "runs" / "audited", [trace("one", score=0.0), threaded(), trace("other")])
    (folder / "run.json").write_text('{"fingerprint": "f1"}')
    (folder / "metrics.jsonl").write_text('{"step": 10, "loss": 0.5}\n{"step": 20, "loss": 0.25}\n')
    report(folder / "audit", "f1")
    found = {}
    browser.run("location.hash = '#/audited/findings'")
    browser.until("document.querySelectorAll('tbody tr').length === 2")
    assert browser.run(INERT)
    found["findings"] = browser.violations() if AXE.exists() else []
    browser.press("Enter")
    browser.until(f"{COUNT} === '2 of 3'")
    browser.run("window.prompt = () => 'the second rule'; location.hash = '#/audited/e/one/1?t=1'")
    browser.until("document.activeElement.id === 't1'")
    assert "likely" not in browser.run("document.querySelector('main').textContent").split("audit")[0]
    browser.until("document.querySelector('main').textContent.includes('look does not show what finish wrote')")
    browser.run("getSelection().selectAllChildren(document.querySelector('#t1 pre'))")
    browser.press("m")
    browser.until("document.querySelector('q')?.textContent === 'fine'")
    browser.until("CSS.highlights.get('mark').size === 1")
    browser.until("document.querySelector('.lanes path.mark')")
    (line,) = next((folder / "reviews").glob("*.jsonl")).read_text().splitlines()
    said = json.loads(line)
    place = {"turn": 1, "field": "says", "step": 0, "from": 0, "to": 4, "quote": "fine"}
    assert (said["kind"], said["note"], said["mark"] | place) == ("mark", "the second rule", place)
    found["marks"] = browser.violations() if AXE.exists() else []
    browser.press("t")
    browser.until("document.querySelectorAll('section.turn').length === 1")
    browser.press("t")
    browser.until("document.querySelectorAll('section.turn').length === 3")
    browser.run("document.querySelector('button[aria-label^=remove]').click()")
    browser.until("!document.querySelector('q')")
    browser.run("[...document.querySelectorAll('a')].find(one => one.textContent.startsWith('forked')).click()")
    browser.until(f"{HEADING} === 'one member 0'")
    browser.run("location.hash = '#/audited/curves'")
    browser.until("document.querySelector('[aria-label=\"loss: from 0.5 to 0.25, between 0.25 and 0.5\"]')")
    assert found == {screen: [] for screen in found}


def test_alerts_name_an_episode_with_score_0(browser: Reading, home: Path) -> None:
    folder = write(home / "runs" / "watched", [trace("before", score=0.0)])
    browser.run("location.hash = '#/watched/live'")
    browser.until("document.querySelector('main').textContent.includes('1 finished')")
    browser.press("a")
    browser.until("document.querySelector('[aria-pressed=true]')")
    with (folder / "traces.jsonl").open("ab") as file:
        file.write(line(trace("after", score=0.0)))
    browser.until("document.querySelector('[role=alert]')?.textContent === 'score 0: after, member 0'")


def test_new_episodes_appear_without_a_reload(browser: Reading, home: Path) -> None:
    with (home / "runs" / "a run" / "traces.jsonl").open("r+b") as file:
        file.seek(-len(b"torn"), 2)
        file.write(line(trace("late")))
    browser.until(f"{COUNT} === '{COUNTED + 1} of {COUNTED + 1}'")
    assert quiet(browser)
