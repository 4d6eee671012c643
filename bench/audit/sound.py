"""Precision of the audit: sound environments, on which it must report nothing.

    python bench/audit/sound.py [--only TEXT] [--all] [--jobs N] [--budget SECONDS] [--out FILE] [--json]

The subjects are the built-in environments (`coding` with --all only), the clean worlds of `seeded/`, the worlds of
`sound/`, `sound_later/`, `sound_odd/` and `blind/`, and public environments of Gymnasium, Reasoning Gym, verifiers and
OpenEnv (`_sound_public.toml`). Public packages are installed from the registry, each list of requirements in an
environment of its own under `$QUINTAIN_CACHE/peers`. Environments of OpenEnv's repository are in no registry:
`$QUINTAIN_OPENENV_ENVS` names a checkout's folder `envs`. What cannot be had is skipped, with the reason.

A finding is *false* unless the corpus lists it as a true one, with a reproduction. No proven error may be false.
Warnings are all other findings but notes and hints; there may be 0.3 false ones per world. The exit status is 1 if
there are more, if a subject could not be audited, or if a check broke.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT)]

from bench._table import Row, note, row  # noqa: E402
from bench.audit._peer_install import Impossible, python  # noqa: E402
from bench.audit._sound_corpus import Sound, corpus, missing  # noqa: E402
from bench.audit.detectors import Case, play, stops  # noqa: E402
from quintain.audit.kernel.loader import Subject  # noqa: E402
from quintain.errors import UsageError  # noqa: E402

WARNINGS = 0.3
"""Most warnings per world, on average."""
Result = dict[str, Any]


class Verdict(NamedTuple):
    """Findings of one audit, sorted."""

    sound: Sound
    result: Result
    errors: list[Result]
    """Proven errors that are false."""
    warnings: list[Result]
    true: list[Result]

    @property
    def failed(self) -> bool:
        """True if the subject could not be audited, or a check broke on it."""
        return "error" in self.result or bool(self.result.get("broke"))


def audited(sound: Sound, budget: float) -> Result:
    """Audits a subject, with the packages that it needs."""
    try:
        with prepared(sound) as case:
            return play(case, budget=budget)
    except Impossible as why:
        return {"name": sound.case.name, "skipped": str(why)}
    except UsageError as error:
        return {"name": sound.case.name, "error": str(error), "found": [], "seconds": 0.0}


@contextlib.contextmanager
def prepared(sound: Sound) -> Iterator[Case]:
    """Yields the case, with its packages in the path of the processes that the audit starts, or its server running."""
    if not sound.needs:
        yield sound.case
        return
    interpreter = python(sound.needs)
    if sound.serves:
        with served(interpreter, sound.serves) as url:
            yield sound.case._replace(subject=Subject(f"openenv:{url}"))
        return
    [packages] = interpreter.parents[1].glob("lib/python*/site-packages")
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(packages), before)))
    try:
        yield sound.case
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


@contextlib.contextmanager
def served(interpreter: Path, name: str) -> Iterator[str]:
    """Yields the URL of an OpenEnv environment, served by OpenEnv's own server.

    Raises:
        Impossible: It does not begin to serve.
    """
    command = [str(interpreter), str(Path(__file__).with_name("_sound_openenv.py")), name]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    pipe = subprocess.PIPE
    with (
        tempfile.TemporaryFile("w+") as errors,  # an unread pipe would stop a server that writes much
        subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=errors, text=True, env=env) as process,
    ):
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        if not port:
            process.wait()
            errors.seek(0)
            raise Impossible((errors.read().strip() or "the server printed nothing").splitlines()[-1])
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


def judged(sound: Sound, result: Result) -> Verdict:
    """Sorts the findings of an audit into false proven errors, false warnings and true ones."""
    heavy = [one for one in result["found"] if one["severity"] != "note" and one["confidence"] != "hint"]
    known = [(bug.check, bug.title) for bug in sound.true]
    true = [one for one in heavy if any(one["check"] == c and one["title"].startswith(t) for c, t in known)]
    false = [one for one in heavy if one not in true]
    return Verdict(sound, result, [one for one in false if stops(one)], [one for one in false if not stops(one)], true)


def rows(verdicts: Sequence[Verdict]) -> Iterator[Row]:
    """Yields the measurements; the first two are the gate's."""
    count = len(verdicts)
    yield row("proven errors", sum(len(one.errors) for one in verdicts), "findings", goal=0)
    warnings = sum(len(one.warnings) for one in verdicts)
    yield row("warnings per world", warnings / count if count else None, "findings", goal=WARNINGS)
    yield row("worlds not audited", sum(one.failed for one in verdicts), "worlds", goal=0)
    yield row("worlds audited", count, "worlds")
    yield row("true findings", sum(len(one.true) for one in verdicts), "findings")
    for one in verdicts:
        name, result = one.sound.case.name, one.result
        yield row(f"{name}: proven errors", len(one.errors), "findings", goal=0)
        yield row(f"{name}: warnings", len(one.warnings), "findings")
        yield row(f"{name}: time", round(result["seconds"], 1), "s")
        yield row(f"{name}: checks finished", result.get("finished", 0), "checks")
        yield row(f"{name}: checks applicable", result.get("applicable", 0), "checks")


def show(verdicts: Sequence[Verdict], skipped: Sequence[Result], measured: Sequence[Row]) -> None:
    """Prints a line for each subject, the findings, and the gate."""
    head = f"{'subject':<32}{'kind':<15}{'seconds':>8}{'errors':>8}{'warnings':>10}{'checks':>10}"
    print(head)
    for one in verdicts:
        case, result = one.sound.case, one.result
        checks = f"{result.get('finished', 0)}/{result.get('applicable', 0)}"
        numbers = f"{result['seconds']:>8.0f}{len(one.errors):>8}{len(one.warnings):>10}{checks:>10}"
        print(f"{case.name:<32}{one.sound.kind:<15}{numbers}")
    for result in skipped:
        print(f"{result['name']:<32}skipped: {result['skipped']}")
    for folder in missing():
        print(f"{folder + '/':<32}skipped: the folder does not exist")
    for one in verdicts:
        for title, found in (("FALSE", one.errors), ("false", one.warnings), ("true", one.true)):
            for item in found:
                certain = f"{item['confidence']} {item['severity']}"
                print(f"{title} {one.sound.case.name}: {certain} {item['check']}: {item['title']}")
        for line in filter(None, (one.result.get("error"), *one.result.get("broke", ()))):
            print(f"BROKE {one.sound.case.name}: {line}")
    print()
    for one in measured[:5]:
        missed = ", MISSED" if one["ok"] is False else ""
        goal = "" if one["goal"] is None else f"  goal: at most {one['goal']:g}{missed}"
        value = "-" if one["value"] is None else f"{one['value']:.3g}"
        print(f"{one['name']:<32}{value:>8}{goal}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="subjects whose kind or name contains this")
    parser.add_argument("--all", action="store_true", help="with the slow subjects")
    parser.add_argument("--jobs", type=int, default=1, help="audits at a time")
    parser.add_argument("--budget", type=float, default=180, help="seconds for one audit")
    parser.add_argument("--out", type=Path, help="results, a line each; those that are there are not played again")
    parser.add_argument("--json", action="store_true", help="print the rows as one JSON list and nothing else")
    return parser.parse_args()


def _results(wanted: Sequence[Sound], given: argparse.Namespace) -> dict[str, Result]:
    known: dict[str, Result] = {}
    if given.out is not None and given.out.is_file():
        known = {one["name"]: one for one in map(json.loads, given.out.read_text().splitlines())}
    with ProcessPoolExecutor(given.jobs) as pool:
        begun = [pool.submit(audited, one, given.budget) for one in wanted if one.case.name not in known]
        for future in as_completed(begun):
            result = future.result()
            known[result["name"]] = result
            note(f"{sum(one.case.name in known for one in wanted)}/{len(wanted)} {result['name']}")
            if given.out is not None and "skipped" not in result:
                with given.out.open("a") as file:
                    file.write(json.dumps(result) + "\n")
    return known


def main() -> int:
    given = _arguments()
    wanted = [one for one in corpus(slow=given.all) if given.only in f"{one.kind} {one.case.name}"]
    known = _results(wanted, given)
    skipped = [known[one.case.name] for one in wanted if "skipped" in known[one.case.name]]
    done = [judged(one, known[one.case.name]) for one in wanted if "skipped" not in known[one.case.name]]
    measured = list(rows(done))
    if given.json:
        print(json.dumps(measured, indent=1))
    else:
        show(done, skipped, measured)
    return int(not done or any(one["ok"] is False for one in measured))


if __name__ == "__main__":
    sys.exit(main())
