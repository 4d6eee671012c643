"""`quintain audit`: find bugs in an environment that a model would learn from."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quintain.errors import UsageError

from . import audit_advisor, completion, console, exits, options

if TYPE_CHECKING:
    from quintain.audit.auditor import Report
    from quintain.audit.kernel.check import Check
    from quintain.audit.kernel.finding import Finding
    from quintain.audit.kernel.loader import Subject

    from .audit_accepted import AcceptedFile


BUDGET_S = 60.0
"""Default time of an audit, in seconds."""


@click.command(short_help="Find bugs in an environment that a model would learn from.")
@click.argument("env", default="", shell_complete=completion.environments)
@click.option(
    "--tasks",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="Number of tasks to use, spread evenly over the split.",
)
@options.split
@click.option(
    "--budget",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="Time for the whole audit: the most valuable checks run first, those left are listed.  [default: 60]",
)
@click.option("--thorough", is_flag=True, help="Run all checks, as long as they take.")
@click.option(
    "--limit", type=float, default=30.0, show_default=True, metavar="SECONDS", help="Time limit for one probe."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of all random choices.")
@click.option("--check", "checks", multiple=True, metavar="ID", help="Run only this check; repeatable.")
@click.option(
    "--class",
    "classes",
    multiple=True,
    metavar="CLASS",
    shell_complete=completion.classes,
    help="Run only checks of this class.",
)
@click.option("--plugin", type=options.PATH, multiple=True, metavar="FILE", help="Python file with your own checks.")
@click.option("--cases", type=options.PATH, metavar="FILE", help="ENV is a scoring function; file with its cases.")
@click.option("--baseline", type=options.PATH, metavar="FILE", help="Earlier report.json; report only new findings.")
@click.option(
    "--accepted",
    type=options.PATH,
    metavar="FILE",
    help="Findings that do not fail the audit.  [default: accepted.toml beside ENV's file, else in this folder]",
)
@click.option("--certificate", type=options.PATH, metavar="FILE", help="Verify this certificate and run no audit.")
@click.option(
    "--mutate", is_flag=True, help="Also mutate the environment's code and see if rewards change (takes minutes)."
)
@click.option(
    "--advisor",
    metavar="MODEL",
    help="Model that reads ENV's code and proposes probes, such as openai:NAME; only what is proven counts.",
)
@click.option("--base-url", metavar="URL", help="Endpoint of --advisor openai:NAME; the key comes from OPENAI_API_KEY.")
@click.option(
    "--env", "variables", multiple=True, metavar="NAME", help="Environment variable that ENV may read; repeatable."
)
@click.option("--list", "listing", is_flag=True, help="List the checks that would run, without running them.")
@options.twin
@options.data
@options.nl_assertions
@options.made_with
@click.option("--out", type=options.PATH, metavar="DIR", help="Folder for the report.  [default: audits/ENV-N]")
@options.opens
@options.json
def audit(**given: Any) -> None:
    """Look for bugs in ENV that a model would learn from, and prove each by a short trajectory.

    ENV is a registered name, package.module:attr, path/to/file.py:attr (an Environment, or a function that returns a
    plain object with tasks, tools, reset, call and score), gymnasium:ID, verifiers:MODULE, openenv:URL, ors:URL,
    openapi:URL, mcp:URL, the URL of a served environment (http://HOST:PORT/NAME), with --option scorer=NAME a data
    file, with --cases a scoring function, or a folder of traces. Ends with status 0 when nothing is proven and enough
    was checked, 1 when an error is proven, 4 when the subject cannot be run, 5 when nothing is proven but too little
    was checked.
    """
    from quintain.audit.auditor import audit as run
    from quintain.audit.kernel.child import SubjectBroken
    from quintain.audit.report import document
    from quintain.audit.traces import audit_traces

    from . import audit_accepted as accepted

    if given["listing"]:
        _list(_checks(given), as_json=given["as_json"])
        return
    if not given["env"]:
        raise UsageError("name the environment to audit: quintain audit ENV; `quintain list` names those installed")
    subject, chosen = _subject(given), _checks(given)
    try:
        if given["certificate"] is not None:
            _still_holds(subject, given["certificate"], as_json=given["as_json"])
            return
        before = document.known_before(given["baseline"]) if given["baseline"] is not None else set[str]()
        known = accepted.find(_accepted_file(given))
        names: dict[str, Any] = {name: given[name] for name in ("tasks", "seed", "limit")} | {"budget": _budget(given)}
        advisor = audit_advisor.made(given["advisor"], given["base_url"], is_traces=_is_traces(given))
        if _is_traces(given):
            report = audit_traces(Path(given["env"]), chosen, seed=given["seed"])
        else:
            with console.progress("loading", len(chosen), shows_elapsed=True) as update:

                def watch(check: Check, done: int, count: int) -> None:
                    console.log.info("%d of %d: %s", done + 1, count, check.id)
                    update(completed=done, description=f"{check.class_}: {check.id}")

                names |= {"watch": watch, "saw": _seen(known), "stage": None if advisor is None else advisor.check}
                report = audit_advisor.recorded(run(subject, chosen, **names), advisor)
    except SubjectBroken as error:
        click.echo(f"Error: {given['env']} could not be run: {error}", err=True)
        raise click.exceptions.Exit(exits.SUBJECT) from None
    report = _report(report, given, before=before, known=known)
    if report.stops:
        raise click.exceptions.Exit(exits.FAILED)
    if report.too_little:
        raise click.exceptions.Exit(exits.UNCHECKED)


def _seen(known: AcceptedFile | None) -> Callable[[Finding], None]:
    """Returns a function that tells each error as soon as it is proven: the report itself takes a minute."""
    context, begun, printing = click.get_current_context(), time.monotonic(), threading.Lock()
    shown = {row.finding for row in known.rows} if known is not None else set[str]()

    def saw(finding: Finding) -> None:
        with printing, context.scope(cleanup=False):  # Checks run in threads.
            if finding.stops and finding.name not in shown:
                shown.add(finding.name)
                console.hint(f"proven after {time.monotonic() - begun:.0f} s: {finding.title}")

    return saw


def _budget(given: dict[str, Any]) -> float | None:
    if given["thorough"] and given["budget"] is not None:
        raise UsageError("--thorough takes all the time it needs; give it or --budget, not both")
    return None if given["thorough"] else BUDGET_S if given["budget"] is None else given["budget"]


def _subject(given: dict[str, Any]) -> Subject:
    from quintain.audit.kernel.loader import Subject

    from .selection import anchored

    names = ("data", "nl_assertions", "twin")
    made_with = options.environment_options(given["options"], **{name: given[name] for name in names})
    made_with |= {"split": given["split"]} if given["split"] is not None else {}
    path: Path | None = given["cases"]
    if path is not None and not path.is_file():
        raise UsageError(f"file of cases {str(path)!r} does not exist")
    cases = str(path.absolute()) if path is not None else ""
    for name in given["variables"]:
        if name not in os.environ:
            raise UsageError(f"--env {name}: no environment variable of this name is set; export it before the audit")
    return Subject(anchored(given["env"]), made_with, cases, env=given["variables"])


def _is_traces(given: dict[str, Any]) -> bool:
    """True if ENV is a folder or a file of records, and no data file with a scorer."""
    path, is_data = Path(given["env"]), "scorer" in options.pairs("--option", given["options"])
    return bool(given["env"]) and (
        path.is_dir() or (path.suffix in (".json", ".jsonl") and path.is_file() and not is_data)
    )


def _checks(given: dict[str, Any]) -> list[Check]:
    from quintain.audit.kernel import check
    from quintain.audit.mutants import checks as mutants
    from quintain.audit.traces import checks_of_traces

    if _is_traces(given):
        return check.chosen(checks_of_traces(), given["checks"], given["classes"])
    further = [one for path in given["plugin"] for one in check.from_file(path)]
    further += mutants.CHECKS if given["mutate"] else ()
    everything = check.ordered([*check.registered(), *further])
    if given["plugin"] and not given["checks"] and not given["classes"]:
        return check.ordered(further)
    return check.chosen(everything, given["checks"], given["classes"])


def _list(checks: list[Check], *, as_json: bool) -> None:
    if as_json:
        names = ("id", "class_", "level", "needs", "severity", "about")
        console.print_json([{name.rstrip("_"): getattr(one, name) for name in names} for one in checks])
        return
    rows = [(one.id, one.class_, one.about, one.level, ", ".join(one.needs)) for one in checks]
    console.stdout().print(console.grid("check", "class", "question", "?level", "?needs", rows=rows))


def _report(report: Report, given: dict[str, Any], *, before: set[str], known: AcceptedFile | None) -> Report:
    """Writes and prints the report, and returns it without the findings named in `before` and with accepted ones."""
    import msgspec

    from quintain.audit.report import certificate, document

    from . import audit_accepted as accepted
    from .audit_causes import grouped
    from .audit_table import print_report

    fresh = tuple(one for one in report.findings if one.name not in before)
    report = msgspec.structs.replace(report, findings=fresh, known=tuple(sorted(before)))
    if known is not None:
        report = accepted.accept(report, known.rows)
        checks = {one.check for one in report.checks}
        for name in accepted.unmatched(report, known.rows):
            if name[:-9] in checks or not (given["checks"] or given["classes"] or given["plugin"]):
                click.echo(f"Warning: {known.path} accepts {name}, but no finding has this name", err=True)
    report = msgspec.structs.replace(report, findings=grouped(report.findings))
    folder = given["out"] if given["out"] is not None else _fresh_folder(given["env"], given["twin"])
    report = document.save(report, folder)
    certificate.save(certificate.certificate(report), folder / "certificate.json")
    if given["as_json"]:
        console.print_json(document.document(report))
    else:
        print_report(console.stdout(), report, folder)
    if given["opens"]:
        console.browse(folder / "report.html")
    return report


def _accepted_file(given: dict[str, Any]) -> Path | None:
    """Returns the file of --accepted, else accepted.toml beside the subject's file or in the current folder, if any."""
    if given["accepted"] is not None:
        path: Path = given["accepted"]
        return path
    subject = Path(given["env"].partition(":")[0])
    folder = subject if subject.is_dir() else subject.parent if subject.is_file() else Path()
    return file if (file := folder / "accepted.toml").is_file() else None


def _fresh_folder(env: str, twin: str | None) -> Path:
    from .folders import make_numbered

    name = re.sub(r"[^\w.-]+", "-", Path(env).name).strip("-.") + (f"-{twin}" if twin else "")
    return make_numbered(Path("audits") / name, "folder", "; give --out DIR")


def _still_holds(subject: Subject, path: Path, *, as_json: bool) -> None:
    from quintain.audit.auditor import digest_of
    from quintain.audit.report import certificate

    one = certificate.load(path)
    differing = certificate.void(one, certificate.digests(*digest_of(subject, one.indices)))
    holds = one.holds and not differing
    if as_json:
        console.print_json({"holds": holds, "void": differing, "why_not": one.why_not})
    else:
        out = console.stdout()
        out.print("The certificate holds." if holds else "The certificate does not hold.")
        for line in (*differing, *one.why_not):
            out.print(f"  {line}", soft_wrap=True)
    if not holds:
        raise click.exceptions.Exit(exits.FAILED)
