"""Recall and precision of the audit on environments with known bugs and on sound ones.

    python bench/audit/detectors.py [--suite NAME] [--half early|late|newest] [--own] [--out FILE]

Suites: `twins`: the poisoned twins of `sales` and `support`; `seeded`: bugs written without a look at the detectors;
`history`: bugs that public projects really had, before and after their fix; `blind`: bugs by authors who had seen
neither checks nor other bugs; `scorers`; `clean`: sound subjects. A bug is *caught* when a finding names its class, or
one under which it is named as rightly, and the sound counterpart has no finding of that check. "proven" counts only
proven errors, "reported" all but hints. Bounds are Clopper and Pearson's, 95 %.

All misses were studied in the end, so today's recall says little about unseen bugs. At first sight it was 59 of 85 in
worlds of which the other bugs were known ("early"), 26 of 57 in worlds written later, by authors who had seen no
detector ("late"), and 34 of 52 in more of that kind, once the earlier misses had become checks ("newest").
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT)]

from bench.audit import blind, history, seeded, unseen, unseen_b, unseen_c, unseen_d, unseen_e, unseen_f  # noqa: E402
from quintain.audit.auditor import audit  # noqa: E402
from quintain.audit.facts.bounds import bounds  # noqa: E402
from quintain.audit.kernel.check import registered  # noqa: E402
from quintain.audit.kernel.child import SubjectBroken  # noqa: E402
from quintain.audit.kernel.finding import CLASSES  # noqa: E402
from quintain.audit.kernel.loader import Subject  # noqa: E402

TWINS = (
    "stale_cache", "reward_hack", "false_resolution", "silent_default", "reset_leak", "reward_clipping", "data_realism",
    "action_drift",
)  # fmt: skip
TASKS = 30
SUITES = (
    "twins",
    "seeded",
    "blind",
    "unseen",
    "unseen_b",
    "unseen_c",
    "unseen_d",
    "unseen_e",
    "unseen_f",
    "scorers",
    "history",
    "clean",
)


class Case(NamedTuple):
    """A subject and its bug; `classes` is empty for a sound one, which may be the counterpart of others."""

    suite: str
    name: str
    subject: Subject
    classes: tuple[str, ...] = ()
    beside: str = ""
    half: str = ""


def written(suite: str, module: ModuleType) -> Iterator[Case]:
    """Worlds and bugs of a set that was written without sight of the checks."""
    for world in module.CLEAN:
        yield Case("clean", f"{suite} {world}", Subject(f"{ROOT}/bench/audit/{suite}/{world}.py:env"))
    for one in module.BUGS:
        subject = Subject(f"{ROOT}/bench/audit/{suite}/{one.world}.py:{one.name}")
        classes = tuple(filter(None, (one.kind, one.also)))
        name = f"{one.world} {one.name.removeprefix('env_')}"
        yield Case(suite, name, subject, classes, f"{suite} {one.world}")


def cases() -> Iterator[Case]:
    """Everything there is."""
    for env in ("sales", "helpdesk"):
        yield Case("clean", env, Subject(env))
        for twin in TWINS:
            yield Case("twins", f"{env}--{twin}", Subject(env, {"twin": twin}), (twin,), env)
    yield Case("clean", "enterprise", Subject("enterprise"))
    for name, spec in seeded.CLEAN.items():
        yield Case("clean", name, Subject(str(ROOT / spec)))
    for bug in seeded.BUGS:
        spec = Subject(str(ROOT / seeded.spec(bug)))
        yield Case("seeded", bug.name, spec, (bug.klass, *bug.also), bug.environment, half(bug.environment))
    yield from written("blind", blind)
    yield from written("unseen", unseen)
    yield from written("unseen_b", unseen_b)
    yield from written("unseen_c", unseen_c)
    yield from written("unseen_d", unseen_d)
    yield from written("unseen_e", unseen_e)
    yield from written("unseen_f", unseen_f)
    folder = ROOT / "bench/audit/seeded"
    for name in (*seeded.CLEAN_SCORERS, *seeded.SCORERS):
        sound = name.partition("__")[0]
        subject = Subject(f"{folder}/scorers.py:{name}", cases=f"{folder}/cases/{sound}.jsonl")
        klass = (seeded.SCORERS[name],) if name in seeded.SCORERS else ()
        yield Case("scorers" if klass else "clean", name, subject, klass, sound if klass else "")
    for pair in history.PAIRS:
        for when, spec in (("after", pair.after), ("before", pair.before)):
            classes = (pair.klass, *pair.also) if when == "before" else ()
            beside = f"{pair.name} after" if classes else ""
            suite = "history" if classes else "clean"
            yield Case(suite, f"{pair.name} {when}", Subject(spec, cases=pair.cases), classes, beside)


def half(world: str) -> str:
    """Returns the period in which a world was written; see the module."""
    return "newest" if world in seeded.NEWEST else "late" if world in seeded.LATE else "early"


def play(case: Case, tasks: int = TASKS, budget: float = 180, *, classes: Sequence[str] = CLASSES) -> dict[str, Any]:
    """Audit one subject, with the checks of these classes; what was found, in short."""
    started = time.perf_counter()
    checks = [one for one in registered() if one.class_ in classes]
    try:
        report = audit(case.subject, checks, tasks=tasks, budget=budget)
    except SubjectBroken as error:
        return {"name": case.name, "error": str(error), "found": [], "seconds": time.perf_counter() - started}
    found = [
        {"check": one.check, "class": one.class_, "severity": one.severity, "confidence": one.confidence,
         "title": one.title, "tasks": one.tasks[:3], "trajectory": one.trajectory, "observed": str(one.observed)[:300]}
        for one in report.findings
    ]  # fmt: skip
    broke = [f"{one.check}: {one.reason}" for one in report.checks if one.reason.startswith("the check itself broke")]
    spent = {one.check: round(one.seconds, 2) for one in report.checks}
    finished = sum(one.status == "checked" for one in report.checks)
    return {
        "name": case.name, "found": found, "broke": broke, "spent": spent, "seconds": report.seconds,
        "finished": finished, "applicable": finished + len(report.unfinished),
    }  # fmt: skip


def caught(case: Case, result: dict[str, Any], sound: dict[str, Any] | None, *, proven: bool) -> bool:
    """True if a finding of the right class exists that the sound counterpart lacks."""
    before = {(one["check"], one["title"]) for one in sound["found"]} if sound else set()
    return any(
        one["class"] in case.classes
        and (one["check"], one["title"]) not in before
        and (stops(one) if proven else one["confidence"] != "hint")
        for one in result["found"]
    )


def stops(one: dict[str, Any]) -> bool:
    """True if a finding, in short, is a proven error."""
    return one["severity"] == "error" and one["confidence"] == "proven"


def rate(count: int, n: int) -> str:
    """As in "12/14 0.86 (0.57-0.98)"."""
    low, high = bounds(count, n)
    return f"{count}/{n} {count / n:.2f} ({low:.2f}-{high:.2f})" if n else "-"


def print_tables(done: Sequence[tuple[Case, dict[str, Any]]]) -> None:
    by_name = {case.name: result for case, result in done}
    groups: dict[str, list[tuple[Case, bool, bool]]] = defaultdict(list)
    for case, result in done:
        if not case.classes:
            continue
        sound = by_name.get(case.beside)
        verdicts = (case, *(caught(case, result, sound, proven=proven) for proven in (True, False)))
        groups[case.suite].append(verdicts)
        if case.half:
            groups[f"{case.suite}, {case.half}"].append(verdicts)
            groups[f"  {case.classes[0]}"].append(verdicts)
    width = 34
    print(f"{'suite or class':<{width}}{'proven':<28}{'reported'}")
    for name in sorted(groups, key=lambda one: (one.startswith(" "), one)):
        rows = groups[name]
        n = len(rows)
        reported = rate(sum(row[2] for row in rows), n)
        print(f"{name:<{width}}{rate(sum(row[1] for row in rows), n):<28}{reported}")
    sound = [(case, result) for case, result in done if not case.classes]
    alarms = [(case.name, one) for case, result in sound for one in result["found"] if stops(one)]
    print(f"\nsound subjects: {len(sound)}; proven errors on them: {len(alarms)}")
    for name, one in alarms:
        print(f"  {name}: {one['check']} {one['class']}: {one['title']}")
    right: dict[str, int] = defaultdict(int)
    for case, result in done:
        for check in {one["check"] for one in result["found"] if stops(one) and one["class"] in case.classes}:
            right[check] += 1
    wrong: dict[str, int] = defaultdict(int)
    for _, one in alarms:
        wrong[one["check"]] += 1
    print(f"\n{'check':<40}{'bugs':>6}  precision of its proven errors, sound subjects against right classes")
    for check in sorted({*right, *wrong}, key=lambda one: -right[one]):
        print(f"{check:<40}{right[check]:>6}  {rate(right[check], right[check] + wrong[check])}")
    seconds = sorted(result["seconds"] for _, result in done)
    print(f"\nseconds of an audit: median {seconds[len(seconds) // 2]:.1f}, most {seconds[-1]:.1f}")


def print_misses(done: Sequence[tuple[Case, dict[str, Any]]]) -> None:
    """Prints the bugs that were missed, with the findings in their subjects."""
    by_name = {case.name: result for case, result in done}
    for case, result in done:
        if not case.classes:
            continue
        if not caught(case, result, by_name.get(case.beside), proven=True):
            titles = [f"{one['confidence']} {one['check']}" for one in result["found"]]
            print(f"missed {case.name} ({case.classes[0]}): {result.get('error') or ', '.join(titles) or 'silent'}")
    for case, result in done:
        for line in result.get("broke", ()):
            print(f"BROKE {case.name}: {line}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", choices=SUITES, action="append")
    parser.add_argument("--half", choices=("early", "late", "newest"))
    parser.add_argument("--only", default="", help="names that contain this")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, help="results, a line each; those that are there are not played again")
    parser.add_argument("--tasks", type=int, default=TASKS)
    parser.add_argument("--budget", type=float, default=180, help="seconds for one audit")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no further audit after so long")
    parser.add_argument("--class", dest="klass", choices=CLASSES, action="append", help="bugs and checks of it alone")
    parser.add_argument("--own", action="store_true", help="of a bug, only the checks of its classes: recall, faster")
    parser.add_argument("--misses", action="store_true")
    return parser.parse_args()


def main() -> None:
    given = _arguments()
    wanted = [
        case
        for case in cases()
        if (given.suite is None or case.suite in given.suite)
        and (given.half is None or case.half in ("", given.half))
        and given.only in case.name
        and (given.klass is None or not case.classes or set(given.klass) & set(case.classes))
    ]
    known = {}
    if given.out is not None and given.out.is_file():
        known = {one["name"]: one for one in map(json.loads, given.out.read_text().splitlines())}
    missing = [case for case in wanted if case.name not in known]
    until = time.monotonic() + given.seconds
    classes = given.klass or CLASSES
    with ProcessPoolExecutor(given.jobs) as pool:
        begun = [
            pool.submit(play, case, given.tasks, given.budget, classes=(given.own and case.classes) or classes)
            for case in missing
        ]
        for future in as_completed(begun):
            if future.cancelled():
                continue
            result = future.result()
            known[result["name"]] = result
            print(f"\r{len(known)}/{len(wanted)} {result['name']:<60}", end="", file=sys.stderr, flush=True)
            if given.out is not None:
                with given.out.open("a") as file:
                    file.write(json.dumps(result) + "\n")
            if time.monotonic() > until:
                pool.shutdown(wait=False, cancel_futures=True)
    print(file=sys.stderr)
    done = [(case, known[case.name]) for case in wanted if case.name in known]
    print_tables(done)
    if given.misses:
        print_misses(done)


if __name__ == "__main__":
    main()
