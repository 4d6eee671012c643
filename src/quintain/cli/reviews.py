"""`quintain reviews`: how far the reviewers of a run agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from quintain.errors import UsageError

from . import console, options


@click.command(short_help="How far the reviewers of a run agree.")
@options.path
@click.option("--of", metavar="NAME,NAME", help="Reviewers.  [default: all that judged blindly]")
@options.json
def reviews(*, path: Path, of: str | None, as_json: bool) -> None:
    """Compare the reviews of PATH, a run folder, that people made blindly in `quintain studio`.

    Cohen's kappa for two reviewers, Krippendorff's alpha for more, with 95 % intervals over tasks; and the labels of
    programs, such as those of `quintain triage --jsonl`, beside each reviewer.
    """
    from quintain.studio.agreement import of_run
    from quintain.studio.folders import Runs
    from quintain.studio.places import indexes
    from quintain.studio.taxonomy import TaxonomyFile

    runs = Runs([path], indexes())
    if len(runs.all()) != 1:
        raise UsageError(f"reviews are of one run, and {str(path)!r} holds {len(runs.all())}: {', '.join(runs.all())}")
    (run,) = runs.all().values()
    found = of_run(run, TaxonomyFile.of_run(run.folder).taxonomy(), of=[name for name in (of or "").split(",") if name])
    runs.close()
    if as_json:
        console.print_json(found)
    else:
        _print(found)


def _print(found: dict[str, Any]) -> None:
    out = console.stdout()
    if not found["of"]:
        out.print(f"No blind verdicts, and {found['not_blind']:,} others. Review a sample in `quintain studio`.")
        return
    people, few = ", ".join(found["of"]), " (few: the intervals are wide)" if found["few"] else ""
    out.print(f"{people}: {console.plural(found['episodes'], 'episode')} judged by several, blindly{few}\n")
    rows = [
        (name, one["statistic"], *map(console.number, one["estimate"].values()), console.number(one["agreed"]))
        for name, one in ((name, found[name]) for name in ("owner", "mode"))
    ]
    out.print(console.grid("question", "statistic", ">value", ">low", ">high", ">agreed", rows=rows))
    first = found["first"]
    out.print(f"\nFirst wrong turn: equal {first['equal']}, within one {first['within_one']}, of {first['both']} pairs")
    for name, one in found["programs"].items():
        shares = (f"{what} " + _share(one[what]) for what in ("precision", "recall"))
        out.print(f"Programs against {name}, on {console.plural(one['episodes'], 'episode')}: {', '.join(shares)}")
    open_ = sum(not one["decided"] for one in found["disagreements"])
    out.print(f"Disagreements on the owner: {len(found['disagreements'])}, not decided {open_}")
    for what, count in (("not blind", found["not_blind"]), ("of another episode than the run has", found["stale"])):
        if count:
            out.print(f"Left out: {console.plural(count, 'review')}, {what}")


def _share(bounds: list[float] | None) -> str:
    return "none" if bounds is None else f"{bounds[0]:.2f} [{bounds[1]:.2f} … {bounds[2]:.2f}]"
