"""`quintain export`: the valid episodes of a run as a training file."""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import console, exits, options
from .whole_run import KINDS as WHOLE
from .whole_run import RunExport, write_run

if TYPE_CHECKING:
    from quintain.environment import Environment
    from quintain.task import Task
    from quintain.trace import Trace

    from .training_rows import ExportOptions, Row

_FORMATS = ("chat", "sft", "dpo", "rft", "rows", "parquet", "table", "run", "otlp", "html", "inspect", "atif", "site")
_ADVICE = {
    "dpo": "a pair needs two valid members of a group with different scores; play with --group",
    "rows": "token rows need a model whose endpoint returns token ids (vLLM, SGLang), and valid groups",
}
"""Reason for a file without rows, by format."""


@click.command(short_help="Write the valid episodes of a run as a training file.")
@options.path
@click.option(
    "--format",
    "kind",
    type=click.Choice(_FORMATS),
    default="chat",
    show_default=True,
    help="chat: messages and rewards; sft: messages; dpo: prompt, chosen, rejected; rft: prompt and truth; "
    "rows: token ids; parquet: chat as a table. All episodes, with failed ones: table: facts, rewards and labels as "
    "CSV, or as Parquet for a FILE that ends so; run: a run folder; otlp: OpenTelemetry spans as JSON lines; html: "
    "pages of episodes, in one file that opens without a network; inspect: a log of Inspect; atif: "
    "Harbor's trajectories, one a line; site: a folder for a static host, with changes of steps if --env is given.",
)
@click.option(
    "--min-score", type=float, metavar="X", help="sft: each episode with this score.  [default: best of group]"
)
@click.option("--all-pairs", is_flag=True, help="dpo: each pair with different scores.  [default: best and worst]")
@click.option(
    "--where",
    default="",
    metavar="TERMS",
    help="All formats with failed episodes, but otlp and site: those that a filter of the studio leaves.",
)
@click.option(
    "--without", default="", metavar="PARTS", help="html: leave out reasons, prompts or names; several with commas."
)
@click.option("--canary", default="", metavar="TEXT", help="html: line by which training data may be cleaned of it.")
@options.env
@click.option("--out", type=options.PATH, metavar="FILE", help="File or folder to write.  [default: stdout]")
@options.json
def export(
    *,
    path: Path,
    kind: str,
    env: str | None,
    where: str,
    without: str,
    canary: str,
    out: Path | None,
    as_json: bool,
    **chosen: Any,
) -> None:
    """Write the valid episodes of PATH, a run folder or a file of traces, as JSON lines for a trainer.

    An invalid episode is written by the formats table, run, otlp, html, inspect, atif and site only, which need a run
    folder.
    The counts of rows, and of skipped episodes by reason, go to stderr. The environment adds the schemas of its tools.
    Ends with status 1, and writes nothing, if no episode fits.
    """
    from .training_rows import ExportOptions

    _refuse(kind, out, where=where, sent=without or canary, as_json=as_json, **chosen)
    if kind in WHOLE:
        count = write_run(RunExport(kind, path, out, where, env, without, canary))
        if as_json:
            console.print_json({"format": kind, "episodes": count, "out": str(out)})
        else:
            click.echo(console.plural(count, "episode"), err=True)
        return
    report = _ExportCount(kind)
    with contextlib.redirect_stdout(sys.stderr):  # What the environment prints is not a row.
        parts = _TaskParts(path, env)
        rows = report.counted(path, ExportOptions(**chosen), parts)
        if out is None:
            console.write(map(_line, rows))
        else:
            _fill(out, rows, kind)
    if as_json:
        console.print_json(report.to_dict() | {"out": str(out), "tools_missing": parts.missing or None})
    else:
        click.echo(report.text(parts.missing), err=True)
    if not report.rows:
        raise click.exceptions.Exit(exits.FAILED)


def _refuse(
    kind: str, out: Path | None, *, where: str, sent: str, min_score: float | None, all_pairs: bool, as_json: bool
) -> None:
    """Refuses options that do not fit together.

    Raises:
        UsageError: An option belongs to another format, or the rows need a file.
    """
    from quintain.errors import UsageError

    if min_score is not None and kind != "sft":
        raise UsageError(f"--min-score chooses episodes of --format sft, got --format {kind}")
    if all_pairs and kind != "dpo":
        raise UsageError(f"--all-pairs chooses pairs of --format dpo, got --format {kind}")
    chooses = [one for one in WHOLE if one not in {"otlp", "site"}]
    if where and kind not in chooses:
        kinds = ", ".join(chooses)
        raise UsageError(f"--where chooses episodes of --format {kinds}, got --format {kind}")
    if sent and kind != "html":
        raise UsageError(f"--without and --canary change a file of --format html, got --format {kind}")
    if out is None and (as_json or kind in ("parquet", "run", "html", "site")):
        given = "--json" if as_json else f"--format {kind}"
        raise UsageError(f"{given} needs a file for the rows; name one with --out FILE")


class _ExportCount:
    """Counts of an export."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._episodes = self._scored = 0
        self._total = 0.0
        self._skipped: Counter[str] = Counter()
        self.rows = 0

    def counted(self, path: Path, choice: ExportOptions, parts: _TaskParts) -> Iterator[Row]:
        """Yields the rows of all groups, and counts them."""
        from .training_rows import groups, rows

        for group in groups(path):
            self._episodes += len(group)
            found = rows(self._kind, group, choice, tools=parts.schemas, truth=parts.truth, skipped=self._skipped)
            for row in found:
                self.rows += 1
                if "score" in row:
                    self._scored += 1
                    self._total += row["score"]
                yield row

    def to_dict(self) -> dict[str, Any]:
        return {
            "format": self._kind,
            "rows": self.rows,
            "episodes": self._episodes,
            "exported": self._episodes - self._skipped.total(),
            "skipped": dict(self._skipped.most_common()),
            "mean_score": self._total / self._scored if self._scored else None,
        }

    def text(self, missing: str) -> str:
        """Returns the counts as one line for a person, and a second one if schemas of tools are missing."""
        said = self.to_dict()
        episodes = console.plural(self._episodes, "episode")
        words = f"{console.plural(self.rows, 'row')} from {said['exported']:,} of {episodes}"
        if self._scored:
            words += f", mean score {console.number(said['mean_score'])}"
        if self._skipped:
            words += "; skipped: " + ", ".join(f"{count:,} {reason}" for reason, count in self._skipped.most_common())
        if not self.rows and self._kind in _ADVICE:
            return f"{words}\n{_ADVICE[self._kind]}"
        return words + (f"\nWithout schemas of the tools: {missing}" if missing and self.rows else "")


class _TaskParts:
    """Tools and truth of the task of a trace, from the run's environment; `missing` says why there are none."""

    def __init__(self, path: Path, spec: str | None) -> None:
        from quintain.errors import QuintainError

        from .folders import environment_of

        self.missing = ""
        self._env: Environment[Any] | None = None
        self._known: dict[tuple[str, ...] | None, list[dict[str, Any]]] = {}
        try:
            self._env = environment_of(path, spec)
        except QuintainError as error:
            if spec is not None or not path.exists():
                raise
            self.missing = str(error)

    def schemas(self, trace: Trace) -> list[dict[str, Any]] | None:
        """Returns the schemas of the agent's tools."""
        from quintain.models import wire

        if self._env is None:
            return None
        if trace.tools_digest != self._env.tools_digest:
            self.missing = f"the tools of {self._env.name} are not those of task {trace.task!r} any more"
            return None
        if (task := self._task(trace)) is None:
            return None
        if task.tools not in self._known:
            self._known[task.tools] = wire.functions(self._env.for_task(task).tools_of("agent"))
        return self._known[task.tools]

    def truth(self, trace: Trace) -> Any:
        """Returns the truth of the task.

        Raises:
            UsageError: The environment or the task is not there any more.
        """
        from quintain.errors import UsageError

        if (task := self._task(trace)) is None:
            raise UsageError(
                f"the truth of task {trace.task!r} is unknown: {self.missing}; name the environment by --env"
            )
        return task.truth

    def _task(self, trace: Trace) -> Task[Any] | None:
        from quintain.errors import QuintainError
        from quintain.studio.watch import task_of

        try:
            return None if self._env is None else task_of(self._env, trace)
        except QuintainError as error:
            self.missing = str(error)
            return None


def _line(row: Row) -> str:
    from quintain import codec

    return codec.json(row).decode() + "\n"


def _fill(out: Path, rows: Iterator[Row], kind: str) -> None:
    """Writes the rows to `out`, which is replaced only by a whole file with at least one row.

    Raises:
        UsageError: The file cannot be written.
    """
    from quintain.errors import UsageError

    part = out.with_name(f"{out.name}.part")
    try:
        for first in rows:
            whole = itertools.chain([first], rows)
            if kind == "parquet":
                from .parquet import write_parquet

                write_parquet(part, whole)
            else:
                with part.open("w", encoding="utf-8") as file:
                    file.writelines(map(_line, whole))
            part.replace(out)
    except OSError as error:
        raise UsageError(f"cannot write {str(out)!r}: {error.strerror}") from error
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
