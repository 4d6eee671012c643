"""The studio on a run of 100,000 episodes: index, table, episodes of 600 and 5,000 turns, search, changes, recorder.

The run is made from a seed: 2 to 20 turns, groups of 8, 2 % failed, 50 policy versions. Headless Chromium shows it at
1400 x 900. CPU is that of the page's main thread in thread time, which a busy machine does not distort; seconds to
paint and between frames are wall time, and only mean something on an idle one.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import _peer_inspect
import msgspec
from _table import Row, arguments, cpu, note, put, row

import quintain as qn
from quintain import codec, plugins
from quintain.models import Oracle
from quintain.record import RunFolder
from quintain.rollout import rollout
from quintain.rollouts import rollouts
from quintain.studio import player
from quintain.studio.folders import Runs
from quintain.studio.index import Index
from quintain.studio.page import STATIC
from quintain.studio.recorder import Recorder
from quintain.trace import End, Level, Message, Reply, Reward, Step, ToolCall, Trace, Turn, Usage

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
from tests.studio.studio import Reading, missing, running, started  # noqa: E402  # the tests' own driver of Chromium

TITLE = "The studio"
REPEATS = 3
FRAMES = 120
INSPECT_SAMPLES = 2_000
RUN = "big"
LONG = {600: "long", 5000: "longest"}
ROWS = "document.querySelectorAll('.scroller .line').length"
COUNT = "document.querySelector('[role=status]')?.textContent"
WORDS = [f"word{n}" for n in range(2000)]
TOOLS = [f"tool_{n}" for n in range(28)]
CRITERIA = [f"criterion_{n}" for n in range(9)]


def turns(dice: random.Random, words: int = 90) -> list[Turn]:
    """Returns 400 different turns, of which episodes are made: of about 1.2 KB with 90 words of an observation."""
    found: list[Turn] = []
    for n in range(400):
        call = ToolCall(f"c{n}", dice.choice(TOOLS), json.dumps({"id": n, "words": dice.choices(WORDS, k=6)}))
        step = Step(call, " ".join(dice.choices(WORDS, k=words)), is_error=n % 7 == 0)
        reply = Reply(
            Message("assistant", " ".join(dice.choices(WORDS, k=words * 2 // 9)), calls=(call,)), usage=Usage(900, 60)
        )
        reward = Reward(name="progress", level=Level.TURN, raw=0.1, value=0.1, turn=0)
        found.append(Turn(index=n, reply=reply, steps=(step,), rewards=(reward,), state_digest=f"{n // 3:032x}"))
    return found


def episode(dice: random.Random, pool: list[Turn], n: int, count: int) -> Trace:
    """Returns an episode of `count` turns."""
    made: list[Turn] = []
    for index in range(count):
        turn = pool[dice.randrange(len(pool))]
        reply = msgspec.structs.replace(turn.reply, policy_version=n // 2000)
        made.append(msgspec.structs.replace(turn, index=index, reply=reply))
    score = float(dice.random() < 0.5)
    rewards = [Reward(name=name, level=Level.TRAJECTORY, raw=score, value=score) for name in CRITERIA]
    trace = Trace(
        environment="desk", fingerprint="f", tools_digest="t", split="train", task=f"task-{n // 8}", task_digest="d",
        tags={"level": "hard" if n % 3 else "easy"}, seed=1, member=n % 8, agent="policy", config=qn.Config(),
        turns=made, end=End.TERMINATED, reason="the agent answered", rewards=rewards, score=score,
    )  # fmt: skip
    if dice.random() < 0.02:
        trace.fail(qn.errors.blame(KeyError("x"), component="S", kind="quintain:tool_bug", stage="agent", turn=count))
    return trace


def make(folder: Path, episodes: int, long: list[int], words: int = 90) -> None:
    """Writes the run, with so many words in each observation."""
    dice = random.Random(7)  # noqa: S311  # not for secrets
    pool = turns(dice, words)
    folder.mkdir(parents=True)
    with (folder / "traces.jsonl").open("wb") as file:
        for n in range(episodes):
            file.write(episode(dice, pool, n, dice.randint(2, 20)).to_json() + b"\n")
        for count, name in zip(long, LONG.values(), strict=False):
            trace = episode(dice, pool, 0, count)
            trace.task, trace.failure, trace.end = name, None, End.TERMINATED
            file.write(trace.to_json() + b"\n")
    (folder / "run.json").write_bytes(codec.json({"name": "desk", "agent": "policy", "split": "train"}))


INDEXING = """
import re, sys, time
from pathlib import Path
from quintain.studio.index import Index
def most_kb():
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
before, began = most_kb(), time.process_time()
index = Index(sys.argv[1], sys.argv[2])
index.update()
print(time.process_time() - began, (most_kb() - before) / 1024)
"""


def of_index(folder: Path, home: Path, episodes: int) -> Iterator[Row]:
    """Indexing in a fresh process, and search, with what the file's pages cost in it."""
    runs = Runs([folder.parent], home / "quintain" / "studio")
    file = runs[RUN].index.file  # Where the studio will look for it.
    runs.close()
    said = subprocess.run(
        [sys.executable, "-c", INDEXING, str(folder), str(file)], check=True, stdout=subprocess.PIPE, text=True
    ).stdout.split()
    name, times = f"index {episodes:,} episodes", max(1, episodes / 100_000)
    yield row(name, float(said[0]), "s CPU", goal=10 * times)
    yield row(f"{name}, memory", float(said[1]), "MB", goal=100)
    index = Index(folder, file)
    spent = cpu(lambda: index.search("word77 word1999"), repeats=REPEATS)
    yield row(f"search {episodes:,} episodes", spent, "s CPU", goal=2 * times)
    index.close()


class Page:
    """The studio, or another page, in a browser, and what it spends."""

    def __init__(self, browser: Reading, address: str, ready: str) -> None:
        self.browser, self.address = browser, address
        browser.resize(1400, 900)
        browser.send("Performance.enable", timeDomain="threadTicks")
        browser.show(address)  # The token becomes a cookie.
        browser.until(ready)

    def metric(self, name: str) -> float:
        found = self.browser.send("Performance.getMetrics")["metrics"]
        return float(next(one["value"] for one in found if one["name"] == name))

    def cpu_ms(self, act: Callable[[], object]) -> float:
        """Milliseconds of the page's main thread."""
        before = self.metric("TaskDuration")
        act()
        after = self.metric("TaskDuration")
        return 1000 * (after - before if after >= before else after)  # Another process has begun at 0.

    def heap_mb(self) -> float:
        self.browser.send("HeapProfiler.collectGarbage")
        return float(self.browser.run("performance.memory.usedJSHeapSize")) / 2**20  # With typed arrays.

    def load(self, place: str, ready: str, most_s: float = 30) -> tuple[float, float, float]:
        """Loads the page at a place; CPU in ms, seconds to the first paint, and to what is waited for."""
        self.browser.send("Page.navigate", url="about:blank")
        self.browser.until("location.href === 'about:blank'")
        seconds = [0.0, 0.0]

        def act() -> None:
            self.browser.send("Page.navigate", url=f"{self.address.partition('?')[0]}{place}")
            self.browser.until(f"document.readyState === 'complete' && {ready}", most_s)
            paint = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"
            seconds[:] = [self.browser.run(paint) / 1000, self.browser.run("performance.now()") / 1000]

        spent = self.cpu_ms(act)
        return spent, seconds[0], seconds[1]

    def go(self, place: str, ready: str) -> None:
        self.browser.run(f"location.hash = {place!r}")
        self.browser.until(ready)

    def scroll(self, box: str, frames: int) -> tuple[float, float]:
        """Scrolls by frames: CPU of a frame in ms, and the interval that 95 % of frames keep."""
        script = f"""new Promise(done => {{
            const box = {box}; const times = [];
            const next = now => {{
                times.push(now); box.scrollTop += 97;
                if (times.length > {frames}) done(times); else requestAnimationFrame(next);
            }};
            requestAnimationFrame(next);
        }})"""
        times: list[float] = []
        spent = self.cpu_ms(lambda: times.extend(self.browser.run(script)))
        steps = sorted(b - a for a, b in itertools.pairwise(times))
        return spent / frames, steps[int(0.95 * (len(steps) - 1))]


def medians(measured: list[tuple[float, ...]]) -> list[float]:
    return [statistics.median(column) for column in zip(*measured, strict=True)]


def of_table(page: Page, folder: Path, frames: int) -> Iterator[Row]:
    """The table of all episodes."""
    browser, place = page.browser, f"#/{RUN}/episodes"
    done = f"{ROWS} > 5 && !{COUNT}.includes('read')"
    page.load(place, done)  # The server has the columns from now on.
    spent, paint, shown = medians([page.load(place, done) for _ in range(REPEATS)])
    yield row("open the table", spent, "ms CPU", goal=250)
    yield row("open the table, first paint", paint, "s", goal=0.3)
    yield row("open the table, rows", shown, "s", goal=1)
    yield row("open the table, heap", page.heap_mb(), "MB", goal=40)
    where = f"{place}?where=score%3C1%20tool:tool_3"
    full = browser.run(COUNT)

    def filtered() -> None:
        page.go(place, f"{COUNT} === {full!r}")
        spend.append(page.cpu_ms(lambda: page.go(where, f"{COUNT} !== {full!r}")))

    def ordered(key: str) -> None:
        page.go(place, "!document.querySelector('[aria-sort=descending]')")
        spend.append(
            page.cpu_ms(lambda: page.go(f"{place}?sort=-{key}", "document.querySelector('[aria-sort=descending]')"))
        )

    spend: list[float] = []
    for _ in range(REPEATS):
        filtered()
    yield row("filter", statistics.median(spend), "ms CPU", goal=50)
    spend.clear()
    for _ in range(REPEATS):
        ordered("turns")
    yield row("sort", statistics.median(spend), "ms CPU", goal=50)
    yield from of_brush(page, place, full)
    browser.run(EVENTS)
    for _ in range(frames):
        browser.press("j")
    took = sorted(browser.run("window.took"))
    # The browser reports only what takes 16 ms or more.
    yield row("key to paint, 95 % of keys", took[int(0.95 * len(took))] if took else 16, "ms", goal=50)
    browser.run("document.querySelector('.scroller').scrollTop = 0")
    each, _ = page.scroll("document.querySelector('.scroller')", frames)
    yield row("scroll the table", each, "ms CPU a frame", goal=4)
    dice = random.Random(8)  # noqa: S311  # not for secrets
    line = episode(dice, turns(dice), 9_000_000, 5).to_json() + b"\n"
    with (folder / "traces.jsonl").open("ab") as file:
        file.write(line)
    began = time.perf_counter()
    browser.until(f"{COUNT} !== {full!r}")
    yield row("a new line is in the table", time.perf_counter() - began, "s", goal=1.5)


def of_brush(page: Page, place: str, full: str) -> Iterator[Row]:
    """A range of turns is dragged over a histogram: a move of the mouse, and what letting go filters."""
    browser = page.browser
    page.go(place, f"{COUNT} === {full!r}")
    box = browser.run("document.querySelectorAll('.histograms [role=slider]')[1].getBoundingClientRect().toJSON()")

    def mouse(kind: str, share: float) -> None:
        point = {"x": box["x"] + share * box["width"], "y": box["y"] + box["height"] / 2}
        browser.send("Input.dispatchMouseEvent", type=kind, button="left", buttons=1, **point)
        browser.run(PAINTED)

    mouse("mousePressed", 0.3)
    shares = [0.3 + 0.01 * n for n in range(20)]

    def move() -> None:
        for share in shares:
            mouse("mouseMoved", share)

    def release() -> None:
        mouse("mouseReleased", shares[-1])
        browser.until(f"{COUNT} !== {full!r}")

    spent = page.cpu_ms(move)
    yield row("brush, a move", spent / len(shares), "ms CPU", goal=16)
    yield row("brush, the filter", page.cpu_ms(release), "ms CPU", goal=50)
    page.go(place, f"{COUNT} === {full!r}")


def of_million(home: Path, episodes: int) -> Iterator[Row]:
    """The index and the table of so many episodes, whose texts are short: at full length they would take 19 GB."""
    folder = home / "runs" / RUN
    make(folder, episodes, [], words=8)
    yield from of_index(folder, home, episodes)
    yield from of_large_table(folder, home, episodes)


def of_large_table(folder: Path, home: Path, episodes: int) -> Iterator[Row]:
    """The table of an indexed run, in a studio of its own."""
    place, full = f"#/{RUN}/episodes", f"{episodes:,} of {episodes:,}"
    done, name = f"{ROWS} > 5 && {COUNT} === {full!r}", f"open the table of {episodes:,}"
    with running(folder.parent, home) as (process, address), Reading() as browser:
        page = Page(browser, address, "document.querySelector('table.runs tbody tr')")
        for words, repeats, goal in ((", the first time", 1, None), ("", REPEATS, 3)):
            before = seconds_of(process.pid)
            spent, paint, shown = medians([page.load(place, done, 600) for _ in range(repeats)])
            server = (seconds_of(process.pid) - before) / repeats
            yield row(f"{name}{words}", spent, "ms CPU")
            yield row(f"{name}{words}, server", 1000 * server, "ms CPU")
            yield row(f"{name}{words}, first paint", paint, "s")
            yield row(f"{name}{words}, rows", shown, "s", goal=goal)
        yield row(f"{name}, heap", page.heap_mb(), "MB", goal=200)
        filtered = f"{place}?where=score%3C1%20tool:tool_3", f"{COUNT} !== {full!r}"
        ordered = f"{place}?sort=-turns", "document.querySelector('[aria-sort=descending]')"
        for name, to in (("filter", filtered), ("sort", ordered)):
            yield row(f"{name} {episodes:,}", page.cpu_ms(lambda to=to: page.go(*to)), "ms CPU")


def seconds_of(process: int) -> float:
    """Seconds of CPU that a process has taken."""
    user, system = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def of_inspect(folder: Path, quick: bool, frames: int) -> dict[str, float]:  # noqa: FBT001
    """Returns what Inspect's viewer spends on the same, by the name of the studio's row; nothing without it."""
    if _peer_inspect.program() is None:
        note("nothing beside it: Inspect is not on the PATH")
        return {}
    samples, turns = (100, 60) if quick else (INSPECT_SAMPLES, 600)
    found: dict[str, float] = {}
    with _peer_inspect.viewing(folder, samples, turns) as address, Reading() as browser:
        page = Page(browser, address, f"{_peer_inspect.ROWS} > 1")
        for name, place, ready in (
            ("open the table", "#/logs/many.eval", f"{_peer_inspect.ROWS} > 5"),
            (f"open {turns:,} turns", "#/logs/long.eval", f"{_peer_inspect.TURNS} > 3"),
        ):
            spent, paint, shown = medians([page.load(place, ready) for _ in range(REPEATS)])
            found |= {name: spent, f"{name}, heap": page.heap_mb()}
            found |= {f"{name}, first paint": paint, f"{name}, rows": shown, f"{name}, seconds": shown}
            each, interval = page.scroll(_peer_inspect.SCROLLER, frames)
            scroll = f"scroll {name.removeprefix('open ')}"
            found |= {scroll: each, f"{scroll}, 95 % of frames": interval}
    return found


def beside(rows: Iterator[Row], peer: str, values: dict[str, float]) -> Iterator[Row]:
    """Yields the rows, with the value of a peer where it has one."""
    for one in rows:
        known = one["name"] in values
        yield one | ({"peer": peer, "peer_value": values[one["name"]]} if known else {})


def of_episode(page: Page, count: int, name: str, frames: int) -> Iterator[Row]:
    """One long episode. The table is open before, so the index is not counted."""
    most = {600: (150, 3), 5000: (600, 8)}.get(count, (None, None))
    ready, place = f"document.querySelectorAll('section.turn').length === {count}", f"#/{RUN}/e/{name}/0"
    table = f"#/{RUN}/episodes"
    opened: list[tuple[float, ...]] = []
    for _ in range(REPEATS):
        page.go(table, f"{ROWS} > 5")
        before, began = page.heap_mb(), time.perf_counter()
        spent = page.cpu_ms(lambda: (page.go(place, ready), page.browser.run(PAINTED)))
        opened.append((spent, time.perf_counter() - began, page.heap_mb() - before))
    spent, wall, heap = medians(opened)
    yield row(f"open {count:,} turns", spent, "ms CPU", goal=most[0])
    yield row(f"open {count:,} turns, seconds", wall, "s", goal=0.5 if count == 600 else None)
    yield row(f"open {count:,} turns, heap", heap, "MB", goal=15 if count == 600 else None)
    laid = [9.0]
    while laid[-1] > 2:  # What the page does by itself, so that find-in-page need not.
        laid.append(round(page.cpu_ms(lambda: time.sleep(0.5))))
    yield row(f"lay out {count:,} turns while idle", sum(laid[1:]), "ms CPU")
    each, interval = page.scroll("document.scrollingElement", frames)
    yield row(f"scroll {count:,} turns", each, "ms CPU a frame", goal=most[1])
    yield row(f"scroll {count:,} turns, 95 % of frames", interval, "ms", goal=20 if count == 600 else None)
    target = count * 2 // 3
    top = "Math.abs(document.activeElement.getBoundingClientRect().top)"
    settled = f"document.activeElement.id === 't{target}' && {top} < 8"
    jump = page.cpu_ms(lambda: (page.go(f"{place}?t={target}", settled), page.browser.run(PAINTED)))
    off = page.browser.run(top)
    yield row(f"jump to a turn of {count:,}", jump, "ms CPU", goal=50)
    yield row(f"jump to a turn of {count:,}, off by", off, "pixels", goal=4)
    found = page.cpu_ms(lambda: page.browser.run(f"window.find('turn {count - 1}')"))
    yield row(f"find in the page of {count:,} turns", found / 1000, "s CPU", goal=0.1 if count == 600 else 0.5)


EVENTS = """(window.took = [], new PerformanceObserver(list => {
    for (const one of list.getEntries()) if (one.name === "keydown") window.took.push(one.duration);
}).observe({type: "event", durationThreshold: 16}), 1)"""
PAINTED = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))"


def of_changes() -> Row:
    """A replay of an episode of `sales`, in the process that has the environment."""
    env = plugins.environment("sales")
    done = [asyncio.run(rollout(env, task, Oracle(), split="test")).trace for task in env.tasks("test")[:40]]
    trace = min(done, key=lambda one: abs(sum(len(turn.steps) for turn in one.turns) - 12))
    steps, line = sum(len(turn.steps) for turn in trace.turns), trace.to_json()
    spent = cpu(lambda: player.played(env, line), repeats=5)
    return row(f"changes of an episode of {steps} steps", 1000 * spent, "ms CPU", goal=60)


class Counter(qn.State):
    """A world with one tool."""

    n: int = 0

    @qn.tool
    def add(self, number: int) -> str:
        """Add a number.

        Args:
            number: The number.
        """
        self.n += number
        return "and a result of some length " * 16


@qn.reward
def fine(_: qn.EpisodeView[Counter]) -> float:
    return 1.0


def of_recorder(episodes: int) -> Row:
    """The recorder's share of a turn: runs with it less runs without it, the least of each."""
    env = qn.Environment(
        "counter", tasks=lambda _: [qn.Task(id=f"t{n}", prompt="go", start=Counter) for n in range(episodes)],
        harness=qn.ToolLoop(), verifier=qn.Verifier(fine), state=Counter,
        config=qn.Config(concurrency=1, max_turns=200),
    )  # fmt: skip

    async def model(_: Any) -> Reply:
        return Reply(Message("assistant", "I add a number to it.", calls=(ToolCall("c", "add", '{"number": 3}'),)))

    def played(*, recorded: bool) -> None:
        async def run() -> None:
            with tempfile.TemporaryDirectory() as place, RunFolder(place, {}) as folder, Recorder(folder) as recorder:
                async for _ in rollouts(recorder.watch(env) if recorded else env, model, env.tasks("test")):
                    pass

        asyncio.run(run())

    with_, without = (cpu(lambda on=on: played(recorded=on), repeats=5) for on in (True, False))
    return row("flight recorder", 1e6 * (with_ - without) / (200 * episodes), "us CPU a turn", goal=6)


def measure(quick: bool, million: bool) -> Iterator[Row]:  # noqa: FBT001
    episodes, long, frames = (300, [60, 200], 5) if quick else (100_000, [*LONG], FRAMES)
    if quick or million:
        with tempfile.TemporaryDirectory() as made:
            yield from of_million(Path(made), 400 if quick else 1_000_000)
        if million:
            return
    yield of_changes()
    yield of_recorder(1 if quick else 40)
    with contextlib.ExitStack() as held:
        home = Path(held.enter_context(tempfile.TemporaryDirectory()))
        folder = home / "runs" / RUN
        make(folder, episodes, long)
        yield from of_index(folder, home, episodes)
        if reason := missing():
            note(f"no rows of the page: {reason}")
            return
        loaded = sum(len(gzip.compress((STATIC / name).read_bytes())) for name in ("studio.js", "studio.css"))
        yield row("what the browser loads, compressed", loaded / 1024, "KB", goal=100)
        address = held.enter_context(started(folder.parent, home))
        peers = of_inspect(home / "logs", quick, frames)
        page = Page(held.enter_context(Reading()), address, "document.querySelector('table.runs tbody tr')")
        yield from beside(of_table(page, folder, frames), f"Inspect, {INSPECT_SAMPLES:,} samples", peers)
        for count, name in zip(long, LONG.values(), strict=True):
            yield from beside(of_episode(page, count, name, frames), "Inspect", peers)


if __name__ == "__main__":
    parser = arguments(TITLE)
    parser.add_argument("--million", action="store_true", help="only the table of 1,000,000 episodes: minutes, 9 GB")
    options = parser.parse_args()
    put(TITLE, list(measure(options.quick, options.million)), as_json=options.json)
