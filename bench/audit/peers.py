"""Findings of other checkers of environments in the subjects on which the audit itself is measured.

    python bench/audit/peers.py [--tool NAME] [--suite NAME] [--only TEXT] [--out FILE] [--jobs N]

Each subject is shown to each tool in the tool's own form, by the thinnest adapter that lets it run as intended:

gymnasium   `check_env` on each task as a registered Gymnasium environment (two resets, single steps)
pettingzoo  `seed_test` on each task as an environment of one agent (two fresh instances in lockstep)
verifiers   `vf-validate` on a v1 taskset (gold: the oracle earns full reward; noop: an untouched task does not)
openenv     `openenv validate` on a served package (its plan is one episode of one task), and its `--url` mode
falsepass   its probes: tasks that are answered by words as a reward function, others played by its policies, which see
            the tools alone; and its static scan of the subject's own class

A bug counts as *found* when the tool fails or warns on it in a way in which it does not on the sound counterpart,
whatever the complaint: the tools do not name our classes. A subject that a tool cannot run is not counted. Tools are
installed, each in a virtual environment of its own, at their first use; one that cannot be is left out.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT)]

from bench.audit._peer_install import NEEDS, Impossible, python  # noqa: E402
from bench.audit.detectors import SUITES, Case, cases  # noqa: E402

LIMIT_S = 120
"""Seconds for one tool and one subject."""
Results = dict[tuple[str, str], dict[str, Any]]


class Verdict(NamedTuple):
    """Result of a tool for a bug."""

    case: Case
    looked: bool
    found: bool


class Worker:
    """A tool at work in its own process."""

    def __init__(self, tool: str, interpreter: Path) -> None:
        script = str(Path(__file__).with_name("_peer_worker.py"))
        self._process = subprocess.Popen(
            [str(interpreter), script, tool], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._ready = self._said()

    def look(self, case: Case) -> dict[str, Any]:
        subject = case.subject
        asked = {"spec": _place(subject.spec), "options": subject.options, "cases": subject.cases, "limit": LIMIT_S}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return self._said()

    def close(self) -> None:
        """Nothing more is asked."""
        self._process.communicate()

    def _said(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the worker is gone, exit status {self._process.wait()}")
        said: dict[str, Any] = json.loads(line)
        return said


def _place(spec: str) -> str:
    """Returns the module path of an environment of ours; its name is registered in this interpreter only."""
    named = [one.value for one in entry_points(group="quintain.environments") if one.name == spec]
    return named[0] if named else spec


def play(tool: str, interpreter: Path, wanted: Sequence[Case]) -> Iterator[dict[str, Any]]:
    """Show cases to a tool."""
    worker = Worker(tool, interpreter)
    try:
        for case in wanted:
            yield {"tool": tool, "name": case.name} | worker.look(case)
    finally:
        worker.close()


def judged(case: Case, result: dict[str, Any], sound: dict[str, Any]) -> Verdict:
    """Returns whether the tool could run on the bug and reported more than on its sound counterpart."""
    looked = not any(one.get(key) for one in (result, sound) for key in ("cannot", "broke"))
    before = {one["key"] for one in sound["found"]}
    more = any(one["key"] not in before for one in result["found"])
    hung = bool(result.get("late")) and not sound.get("late")
    return Verdict(case, looked, looked and (more or hung) and not sound.get("late"))


def print_table(tools: Sequence[str], wanted: Sequence[Case], known: Results) -> None:
    verdicts = {
        tool: [
            judged(case, known[tool, case.name], known[tool, case.beside])
            for case in wanted
            if case.classes and (tool, case.name) in known and (tool, case.beside) in known
        ]
        for tool in tools
    }
    print(f"\n{'found / looked at':<28}" + "".join(f"{tool:>13}" for tool in tools))
    groups: dict[str, set[str]] = defaultdict(set)
    for case in wanted:
        if case.classes:
            for group in (case.suite, f"  {case.classes[0]}", "~all bugs"):
                groups[group].add(case.name)
    for group in sorted(groups, key=lambda one: (one.startswith("~"), one.startswith(" "), one)):
        cells = [_cell([one for one in verdicts[tool] if one.case.name in groups[group]]) for tool in tools]
        print(f"{group.strip('~'):<28}" + "".join(f"{cell:>13}" for cell in cells))
    sound = [case.name for case in wanted if not case.classes]
    rows: dict[str, list[str]] = defaultdict(list)
    for tool in tools:
        seen = [known[tool, name] for name in sound if (tool, name) in known]
        looked = [one for one in seen if not one.get("cannot") and not one.get("broke")]
        spent = sorted(known[tool, case.name]["seconds"] for case in wanted if (tool, case.name) in known)
        rows["sound subjects: alarms"].append(f"{sum(bool(one['found']) for one in looked)}/{len(looked)}")
        for key, title in (("cannot", "could not look at"), ("broke", "adapter broke"), ("late", "not done in time")):
            count = sum(bool(known[tool, case.name].get(key)) for case in wanted if (tool, case.name) in known)
            rows[title].append(str(count))
        rows["seconds: median"].append(f"{spent[len(spent) // 2]:.1f}" if spent else "-")
        rows["seconds: most"].append(f"{spent[-1]:.1f}" if spent else "-")
    for title, cells in rows.items():
        print(f"{title:<28}" + "".join(f"{cell:>13}" for cell in cells))


def _cell(verdicts: Sequence[Verdict]) -> str:
    looked = [one for one in verdicts if one.looked]
    return f"{sum(one.found for one in looked)}/{len(looked)}" if looked else "-"


def chosen(suites: Sequence[str] | None, only: str) -> list[Case]:
    """The cases that are asked for, and the sound counterparts of the bugs among them."""
    everything = list(cases())
    asked = {case.name for case in everything if (not suites or case.suite in suites) and only in case.name}
    beside = {case.beside for case in everything if case.name in asked}
    return [case for case in everything if case.name in asked | beside]


def show(tool: str, missing: Sequence[Case], *, jobs: int, keep: Any) -> None:
    """Show cases to a tool, `jobs` at a time, and keep each result as it comes.

    Raises:
        Impossible: The tool cannot be installed.
    """
    interpreter = python(tool)
    lock, count = threading.Lock(), iter(range(1, len(missing) + 1))

    def stripe(number: int) -> None:
        for result in play(tool, interpreter, missing[number::jobs]):
            with lock:
                keep(result)
                print(
                    f"\r{tool} {next(count)}/{len(missing)} {result['name']:<60}", end="", file=sys.stderr, flush=True
                )

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(stripe, range(min(jobs, len(missing)))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", choices=tuple(NEEDS), action="append")
    parser.add_argument("--suite", choices=SUITES, action="append")
    parser.add_argument("--only", default="", help="names that contain this")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, help="results, a line each; those that are there are not asked for again")
    given = parser.parse_args()
    known: Results = {}
    if given.out is not None and given.out.is_file():
        lines = map(json.loads, given.out.read_text().splitlines())
        known = {(one["tool"], one["name"]): one for one in lines}

    def keep(result: dict[str, Any]) -> None:
        known[result["tool"], result["name"]] = result
        if given.out is not None:
            with given.out.open("a") as file:
                file.write(json.dumps(result) + "\n")

    wanted, tools = chosen(given.suite, given.only), []
    for tool in given.tool or NEEDS:
        missing = [case for case in wanted if (tool, case.name) not in known]
        try:
            if missing:
                show(tool, missing, jobs=given.jobs, keep=keep)
        except Impossible as error:
            print(f"{tool} is left out: {error}")
        else:
            tools.append(tool)
    print(file=sys.stderr)
    print_table(tools, wanted, known)


if __name__ == "__main__":
    main()
