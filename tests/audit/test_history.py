"""Historical pairs: each shows its bug before the fix and not after it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.audit.history import PAIRS, REBUILT, RELEASED, Pair, graders
from bench.audit.history.play import Factory, cases, factory, named, play, solved

CLASSES = {
    "stale_cache", "reward_hack", "false_resolution", "silent_default", "reset_leak", "reward_clipping",
    "data_realism", "action_drift", "races", "judge", "leak", "unsolvable", "flaky_verifier",
}  # fmt: skip
Shows = Callable[[Factory], bool]


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


# --- the registry ---


def test_the_registry_lists_every_pair() -> None:
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
def test_a_bug_shows_before_its_fix_and_not_after(name: str) -> None:
    pair, shows = named(name), SHOWS[name]
    assert shows(factory(pair.before))
    assert not shows(factory(pair.after))


@pytest.mark.parametrize("pair", [pair for pair in REBUILT if not pair.cases], ids=lambda pair: pair.name)
def test_mended_subjects_are_sound(pair: Pair) -> None:
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
    """Module `time`, with a worker whose second passes without waiting."""

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


def test_the_wait_for_a_worker_counts_only_before_the_fix(monkeypatch: pytest.MonkeyPatch) -> None:
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
