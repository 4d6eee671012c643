"""Each historical pair shows its bug before, and does not show it after."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.audit.history import PAIRS, REBUILT, RELEASED, Pair, graders, installed
from quintain import plugins

CLASSES = {
    "stale_cache", "reward_hack", "false_resolution", "silent_default", "reset_leak", "reward_clipping",
    "data_realism", "action_drift", "races", "judge", "leak", "unsolvable", "flaky_verifier",
}  # fmt: skip
Factory = Callable[..., Any]
Shows = Callable[[Factory], bool]


def factory(spec: str) -> Factory:
    file, _, name = spec.rpartition(":")
    found: Factory = getattr(plugins._from_file(Path(file)), name)
    return found


def cases(pair: Pair) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(pair.cases).read_text(encoding="utf-8").splitlines()]


def play(subject: Any, task: str, *calls: list[Any]) -> float:
    """The score of a task after calls."""
    subject.reset(task, 1)
    for name, arguments in calls:
        subject.call(name, arguments)
    score = subject.score()
    assert isinstance(score, float)
    return score


def solved(subject: Any, task: str) -> float:
    return play(subject, task, *subject.oracle(task))


# --- what each bug looks like ---


def spelling_matters(make: Factory) -> bool:
    paid = [
        play(make(), "credit", ["credit_account", {"account_id": "A-101", "amount": amount}]) for amount in (33, 33.0)
    ]
    return paid != [1.0, 1.0]


def a_look_costs(make: Factory) -> bool:
    look = ["list_accounts", {"customer_id": "C-1"}]
    return play(make(), "dispute", look, *make().oracle("dispute")) != 1.0


def the_gold_knows_too_much(make: Factory) -> bool:
    subject = make()
    seen = subject.reset("freeze", 1)
    for name, arguments in subject.oracle("freeze"):
        if name == "freeze_card" and arguments["card_id"] not in seen:
            return True
        seen += json.dumps(subject.call(name, arguments))
    return False


def order_is_another(make: Factory) -> bool:
    subject = make()
    subject.reset("dispute", 1)
    return any(subject.call(name, arguments) != answer for name, arguments, answer in subject.production()["calls"])


def an_unknown_tool_breaks_the_judge(make: Factory) -> bool:
    try:
        return play(make(), "credit", ["give_discount", {}], *make().oracle("credit")) != 1.0
    except RuntimeError:
        return True


def the_gold_is_refused(make: Factory) -> bool:
    return any(solved(make(), task) != 1.0 for task in make().tasks())


def idling_is_paid(make: Factory) -> bool:
    return any(play(make(), task) == 1.0 for task in make().tasks())


def a_forged_exit_code_is_paid(make: Factory) -> bool:
    return play(make(), "root-5041", ["write_proof", {"content": "EXIT_CODE:0\nsorry"}]) == 1.0


def zeros_are_paid(make: Factory) -> bool:
    return play(make(), "softmax", ["submit", {"operations": ["fill_with_zero"]}]) == 1.0


def stopping_is_paid(make: Factory) -> bool:
    return play(make(), "primes", make().oracle("primes")[0]) == 1.0


def no_grade_is_a_zero(make: Factory) -> bool:
    def failing(fault: str) -> Any:
        subject = make()
        subject.reset("sky", 1)
        subject.call(*subject.oracle("sky")[0])
        subject.inject(fault)
        return subject.score()

    return [failing(fault) for fault in ("timeout", "refused", "500")] != [None] * 3


def garbage_is_paid(score: Factory) -> bool:
    return any(score(completion="no idea", solution=case["solution"]) == 1.0 for case in cases(named("cookbook")))


def no_verdict_is_a_mark(make: Factory) -> bool:
    replies = ["", "I cannot say.", '{"score": 9}']
    return [make().judge("metal", "Mercury", lambda prompt, reply=reply: reply) for reply in replies] != [None] * 3


def any_number_is_a_mark(make: Factory) -> bool:
    replies = ["[[90]]", "[ERROR] 429: retry after 30 s"]
    return [make().judge("metal", "Iron", lambda prompt, reply=reply: reply) for reply in replies] != [None] * 2


def the_seed_is_dropped(make: Factory) -> bool:
    def secret() -> str:
        subject = make()
        subject.reset("wordle", 5)
        return str(subject.state()["secret"])

    return len({secret() for _ in range(40)}) > 1


def instances_share(make: Factory) -> bool:
    one, other = make(), make()
    one.reset("duel", 1)
    other.reset("duel", 1)
    one.call("play", {"move": "paper"})
    steps: list[str] = other.state()["steps"]
    return steps != []


def the_future_is_shown(make: Factory) -> bool:
    subject = make()
    subject.reset("slug", 1)
    commits = subject.call("git_log", {"all_refs": True})["commits"]
    shown = [subject.call("git_show", {"commit": commit["commit"]})["files"]["slug.py"] for commit in commits]
    return any(subject.hidden("slug")["fixed_line"] in text for text in shown)


def results_of_another_episode(make: Factory) -> bool:
    subject, fresh = make(), make()
    solved(subject, "quiet network")
    best = subject.oracle("quiet network")[0]
    return play(subject, "busy network", best) != play(fresh, "busy network", best)


def another_document(make: Factory) -> bool:
    subject = make()
    subject.reset("harbour-credit", 1)
    documents = subject.state()["documents"]
    return any(subject.call("fetch", {"url": url}) != {"content": text} for url, text in documents.items())


SHOWS: dict[str, Shows] = {
    "tau2-number-spelling": spelling_matters,
    "tau2-extra-reads": a_look_costs,
    "tau2-blind-gold": the_gold_knows_too_much,
    "tau2-order": order_is_another,
    "tau2-hallucinated-tool": an_unknown_tool_breaks_the_judge,
    "tau2-withheld-tool": the_gold_is_refused,
    "tau2-idle-pays": idling_is_paid,
    "verifiers-lean-exit-code": a_forged_exit_code_is_paid,
    "kernelbench-zeros": zeros_are_paid,
    "harbor-partial-mean": stopping_is_paid,
    "cap-evolve-ungraded": no_grade_is_a_zero,
    "cookbook-unparsed-gold": garbage_is_paid,
    "nemo-evaluator-unreadable-judge": no_verdict_is_a_mark,
    "evalscope-generous-judge": any_number_is_a_mark,
    "openenv-textarena-seed": the_seed_is_dropped,
    "kaggle-default-lists": instances_share,
    "swe-bench-future-commits": the_future_is_shown,
    "cloudai-result-cache": results_of_another_episode,
    "nemo-gym-filing-cache": another_document,
}
QUEUE = "verifiers-math-queue"


def named(start: str) -> Pair:
    (pair,) = (pair for pair in PAIRS if pair.name.startswith(start))
    return pair


# --- the registry ---


def test_the_registry_is_whole() -> None:
    assert len({pair.name for pair in PAIRS}) == len(PAIRS)
    assert set(SHOWS) | {QUEUE} == {pair.name for pair in REBUILT}
    assert all(pair.needs_install for pair in RELEASED)
    for pair in PAIRS:
        assert {pair.klass, *pair.also} <= CLASSES
        assert pair.klass not in pair.also
        assert pair.part in set("THVSC")
        assert pair.source.startswith("https://github.com/")
        assert pair.before != pair.after
        assert callable(factory(pair.before))
        assert callable(factory(pair.after))


@pytest.mark.parametrize("name", SHOWS)
def test_before_it_shows_and_after_it_does_not(name: str) -> None:
    pair, shows = named(name), SHOWS[name]
    assert shows(factory(pair.before))
    assert not shows(factory(pair.after))


@pytest.mark.parametrize("pair", [pair for pair in REBUILT if not pair.cases], ids=lambda pair: pair.name)
def test_what_is_mended_is_sound(pair: Pair) -> None:
    make = factory(pair.after)
    for task in make().tasks():
        assert play(make(), task) == 0.0
        if hasattr(make(), "oracle"):
            assert solved(make(), task) == 1.0
        for tool in make().tools():
            subject = make()
            subject.reset(task, 1)
            assert "error" in subject.call(tool["name"], {"nonsense": None})


class Clock:
    """The module `time`, and a worker for whom one waits a second, without waiting."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def __enter__(self) -> None:
        self.now += 1.0

    def __exit__(self, *error: object) -> None:
        pass


def test_only_before_the_wait_for_a_worker_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert solved(graders.queue_before(), "12 * 12") == 1.0
    clock = Clock()
    monkeypatch.setattr(graders, "time", clock)
    monkeypatch.setattr(graders, "WORKER", clock)
    assert solved(graders.queue_before(), "12 * 12") == 0.0
    assert solved(graders.queue_after(), "12 * 12") == 1.0


def test_subjects_load_by_path_in_a_fresh_process(tmp_path: Path) -> None:
    specs = [spec for pair in REBUILT for spec in (pair.before, pair.after)]
    script = (
        "import sys, pathlib\n"
        "from quintain import plugins\n"
        "for spec in sys.argv[1:]:\n"
        "    file, _, name = spec.rpartition(':')\n"
        "    assert callable(getattr(plugins._from_file(pathlib.Path(file)), name)), spec\n"
    )
    subprocess.run([sys.executable, "-c", script, *specs], check=True, cwd=tmp_path)


# --- released versions ---


@pytest.fixture
def toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, installed.Release]:
    """Two releases of a package whose top does not import, as if they had been installed."""
    monkeypatch.setenv("QUINTAIN_CACHE", str(tmp_path))
    for version in ("1", "2"):
        package = tmp_path / "history" / f"quintain_toy-{version}-{sys.implementation.cache_tag}" / "quintain_toy"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("import a_package_that_nobody_has\n")
        (package / "base.py").write_text(f"VERSION = {version}\n")
        (package / "game.py").write_text("from .base import VERSION\n")
    tops = ("quintain_toy",)
    return {version: installed.Release(f"quintain_toy=={version}", tops, shells=tops) for version in ("1", "2")}


def test_two_releases_live_side_by_side(toys: dict[str, installed.Release]) -> None:
    before = list(sys.path)
    loaded = [installed.load(toys[version], "quintain_toy.game").VERSION for version in ("1", "2", "1")]
    assert loaded == [1, 2, 1]
    assert installed.load(toys["1"], "quintain_toy.base").VERSION == 1
    assert not [name for name in sys.modules if name.startswith("quintain_toy")]
    assert sys.path == before


def test_what_cannot_be_installed_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUINTAIN_CACHE", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(installed.Impossible, match=r"quintain_toy==9 cannot be installed: .*quintain_toy==9"):
        installed.install("quintain_toy==9")
    assert list((tmp_path / "history").iterdir()) == []


def test_what_takes_long_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUINTAIN_CACHE", str(tmp_path))
    made = iter([{"number": 1}])
    assert [installed.kept("numbers", lambda: next(made)) for _ in range(2)] == [{"number": 1}] * 2


Released = Callable[[str], tuple[Factory, Factory]]


@pytest.fixture
def released() -> Released:
    def make(start: str) -> tuple[Factory, Factory]:
        pair = named(start)
        return factory(pair.before), factory(pair.after)

    try:
        installed.install_all()
    except installed.Impossible as reason:
        pytest.skip(str(reason))
    return make


def submit(make: Factory, task: str, answer: str) -> float:
    return play(make(), task, ["submit", {"answer": answer}])


@pytest.mark.slow
def test_cartpole_counts_on(released: Released) -> None:
    def ends(make: Factory) -> list[int]:
        subject = make()
        lengths = []
        for _ in range(2):
            subject.reset("balance", 3)
            answers = [subject.call("push", {"direction": step % 2}) for step in range(12)]
            lengths.append(sum("error" not in answer for answer in answers))
        return lengths

    before, after = released("gymnasium-cartpole")
    assert ends(before) == [12, 8]
    assert ends(after) == [12, 12]


@pytest.mark.slow
def test_a_long_answer_around_the_word_is_paid_fivefold(released: Released) -> None:
    before, after = released("reasoning-gym-bf")
    word = before().oracle("0")[0][1]["answer"]
    assert submit(before, "0", word + " perhaps" * 20) > 5
    assert submit(after, "0", word + " perhaps" * 20) < 0.1


@pytest.mark.slow
def test_the_target_itself_is_paid(released: Released) -> None:
    before, after = released("reasoning-gym-countdown")
    target = str(before().entries[0]["metadata"]["target"])
    assert submit(before, "0", target) == 1.0
    assert target == str(after().entries[0]["metadata"]["target"])
    assert submit(after, "0", target) < 0.1


@pytest.mark.slow
def test_no_matrix_is_right(released: Released) -> None:
    before, after = released("reasoning-gym-pool")
    assert {solved(before(), task) for task in before().tasks()} == {0.0}
    assert {solved(after(), task) for task in after().tasks()} == {1.0}


@pytest.mark.slow
def test_what_is_no_json_breaks_the_scorer(released: Released) -> None:
    before, after = released("reasoning-gym-graph")
    with pytest.raises(json.JSONDecodeError):
        submit(before, "0", "green")
    assert submit(after, "0", "green") == 0.0


@pytest.mark.slow
def test_zeros_at_the_end_matter(released: Released) -> None:
    before, after = released("reasoning-gym-power")
    task = next(task for task in before().tasks() if before().oracle(task)[0][1]["answer"] == "1.0")
    assert [submit(before, task, spelled) for spelled in ("1.0", "1", "1.00")] == [1.0, 0.01, 0.01]
    assert [submit(after, task, spelled) for spelled in ("1.0", "1", "1.00")] == [1.0, 1.0, 1.0]


@pytest.mark.slow
def test_half_of_the_puzzles_are_impossible(released: Released) -> None:
    def impossible(make: Factory) -> int:
        subject = make()
        return sum(subject.state()["impossible"] for task in subject.tasks() if subject.reset(task, 1))

    before, after = released("reasoning-gym-knight")
    assert [impossible(before), impossible(after)] == [23, 7]  # of 40; 20 % are declared


@pytest.mark.slow
def test_only_the_stored_solution_is_paid(released: Released) -> None:
    before, after = released("reasoning-gym-cryptarithm")
    rows = cases(named("reasoning-gym-cryptarithm"))
    others = [row for row in rows if row["expected"] == 1.0 and row["answer"] != row["gold"]["answer"]]
    assert len(others) >= 5
    assert all(before(row["answer"], row["gold"]) < 0.6 for row in others)
    assert all(after(row["answer"], row["gold"]) == row["expected"] for row in rows)


@pytest.mark.slow
def test_another_thread_finds_everything_wrong(released: Released) -> None:
    rows = cases(named("math-verify"))

    def scores(score: Factory) -> list[float]:
        return [score(row["answer"], row["gold"]) for row in rows]

    def elsewhere(score: Factory) -> list[float]:
        found: list[float] = []
        thread = threading.Thread(target=lambda: found.extend(scores(score)))
        thread.start()
        thread.join()
        return found

    before, after = released("math-verify")
    expected = [row["expected"] for row in rows]
    assert elsewhere(before) == [0.0] * len(rows)
    assert elsewhere(after) == expected
    if threading.current_thread() is threading.main_thread():
        assert scores(before) == expected
