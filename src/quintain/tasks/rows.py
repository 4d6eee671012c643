"""Environments of questions: one task per row, one reply per episode."""

from __future__ import annotations

import csv
import functools
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeGuard, cast

import msgspec

from quintain import codec, plugins
from quintain.config import Config
from quintain.environment import Environment
from quintain.errors import UsageError
from quintain.harness import ToolLoop
from quintain.state import State
from quintain.task import Task
from quintain.verifier import Criterion, EpisodeView, Verdict, Verifier, reward

PROMPTS = ("prompt", "question", "input")
"""Columns that can hold the prompt, the first that exists wins."""
ANSWERS = ("answer", "target")
SCORERS = ("exact", "numeric")
"""Names of criteria in `quintain.judges` that a file can be scored by."""

Row = Mapping[str, Any]
Scorer = Criterion[Any] | Callable[[str, Any], Verdict]
"""A criterion, or a function from the agent's last words and the truth to a number or a `Score`."""


class Question(State):
    """The world of a question: nothing, and no tools."""


def from_rows(
    name: str,
    rows: Iterable[Row] | Mapping[str, Iterable[Row]],
    *,
    scorer: Scorer,
    prompt_column: str | None = None,
    answer_column: str | None = None,
    tag_columns: Sequence[str] = (),
    system: str = "",
    config: Config | None = None,
) -> Environment[Question]:
    """Returns an environment with one task per row; the agent answers its prompt in words.

    Args:
        name: Name of the environment, an identifier.
        rows: Rows of the split "test", or the rows of each split by its name. The task's id is the column `id`, or the
            split and the row's number.
        scorer: A criterion, or a function from the agent's last words and the truth to a number or a `Score`.
        prompt_column: Column with the prompt; by default "prompt", "question" or "input".
        answer_column: Column with the truth, any plain data; by default "answer" or "target".
        tag_columns: Columns that become tags of the task; a report gives a mean for each value.
        system: System prompt.
        config: Limits and settings.

    Raises:
        UsageError: A column is missing, a prompt is not text, or two rows of a split have one id.
        DefinitionError: The name is not an identifier, or there are no splits.
    """
    splits = cast(Mapping[str, Iterable[Row]], rows if isinstance(rows, Mapping) else {"test": rows})
    columns: dict[str, Any] = {"prompt": prompt_column, "answer": answer_column, "tags": tag_columns}
    tasks = {split: _tasks(split, list(found), **columns) for split, found in splits.items()}
    return Environment(
        name,
        tasks=tasks.__getitem__,
        harness=ToolLoop(system=system),
        verifier=Verifier(_criterion(scorer)),
        state=Question,
        config=config,
        splits=tuple(tasks),
    )


def from_file(
    path: str,
    *,
    scorer: str = "",
    prompt_column: str | None = None,
    answer_column: str | None = None,
    tag_columns: str = "",
    system: str = "",
) -> Environment[Question]:
    """Returns the environment of a data file, named after the file, with the split "test".

    Args:
        path: A JSONL, CSV or Parquet file.
        scorer: "exact", "numeric", or "file.py:fn", where `fn` is a scorer as for `from_rows`.
        prompt_column: As for `from_rows`.
        answer_column: As for `from_rows`.
        tag_columns: As for `from_rows`, separated by commas.
        system: System prompt.

    Raises:
        UsageError: The file or the scorer does not exist or cannot be used.
    """
    if not scorer:
        raise UsageError(f"{path} needs a scorer: {', '.join(SCORERS)} or file.py:fn, as --option scorer={SCORERS[0]}")
    if scorer in SCORERS:
        found = plugins.attribute(f"quintain.judges:{scorer}")()
    elif ":" in scorer:
        found = plugins.attribute(scorer)
    else:
        raise UsageError(f"unknown scorer {scorer!r}; known: {', '.join(SCORERS)}, file.py:fn")
    name = re.sub(r"\W", "_", Path(path).stem)
    rows = read_rows(path)
    columns: dict[str, Any] = {"prompt_column": prompt_column, "answer_column": answer_column}
    columns["tag_columns"] = [tag.strip() for tag in tag_columns.split(",") if tag.strip()]
    try:
        return from_rows(name if name.isidentifier() else f"_{name}", rows, scorer=found, system=system, **columns)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error


def read_rows(path: str | Path) -> list[dict[str, Any]]:
    """Returns the rows of a JSONL, CSV or Parquet file; in CSV every value is text.

    Raises:
        UsageError: The file cannot be read, a line is not a row, or pyarrow is not installed for Parquet.
    """
    path = Path(path)
    read = _READERS.get(path.suffix)
    if read is None:
        raise UsageError(f"{path} has the suffix {path.suffix!r}, expected {', '.join(_READERS)}")
    try:
        return list(read(path))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"cannot read {str(path)!r}: {getattr(error, 'strerror', None) or error}") from error


def _tasks(
    split: str, rows: Sequence[Row], *, prompt: str | None, answer: str | None, tags: Sequence[str]
) -> Sequence[Task[Question]]:
    if not rows:
        raise UsageError(f"split {split!r} has no rows")
    prompt = _column(rows[0], "prompt", wanted=prompt, known=PROMPTS)
    answer = _column(rows[0], "answer", wanted=answer, known=ANSWERS)
    tasks: dict[str, Task[Question]] = {}
    for number, row in enumerate(rows, 1):
        for column in (prompt, answer, *tags):
            if row.get(column) is None:
                raise UsageError(f"row {number} has no {column!r}; it has: {', '.join(map(str, row)) or 'nothing'}")
        if not isinstance(row[prompt], str):
            raise UsageError(f"row {number}: {prompt!r} must be text, it is a {type(row[prompt]).__name__}")
        name = f"{split}-{number}" if row.get("id") in (None, "") else str(row["id"])
        if name in tasks:
            raise UsageError(f"row {number} has the id {name!r} of an earlier row")
        truth = row[answer]
        tasks[name] = Task(
            id=name,
            prompt=row[prompt],
            start=Question(),
            truth=truth,
            solution=(),
            answer=codec.text(truth),
            tags={tag: codec.text(row[tag]) for tag in tags},
        )
    return list(tasks.values())


def _column(row: Row, what: str, *, wanted: str | None, known: Sequence[str]) -> str:
    """Returns the name of a column.

    Raises:
        UsageError: The row does not have it.
    """
    found = [name for name in ([wanted] if wanted is not None else known) if name in row]
    if found:
        return found[0]
    looked = repr(wanted) if wanted is not None else " or ".join(map(repr, known))
    columns = ", ".join(map(repr, row)) or "none"
    raise UsageError(
        f"no column {looked}; the columns are: {columns}; choose one with --{what}-column, in Python {what}_column"
    )


def _criterion(scorer: Scorer) -> Criterion[Any]:
    if _is_criterion(scorer):
        return scorer
    score = cast(Callable[[str, Any], Verdict], scorer)
    try:
        inspect.signature(score).bind("", None)
    except TypeError as error:
        raise UsageError(
            "a scorer is a criterion (@qn.reward) or a function of two parameters, the last words and the truth; "
            f"{getattr(score, '__name__', repr(score))} is none: {error}"
        ) from error

    @reward
    @functools.wraps(score)  # The name and the module of the criterion are those of the function.
    def criterion(view: EpisodeView[Any]) -> Verdict:
        return score(view.answer, view.task.truth)

    return criterion


def _is_criterion(scorer: object) -> TypeGuard[Criterion[Any]]:
    return isinstance(scorer, Criterion)


def _jsonl(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    yield msgspec.json.decode(line, type=dict[str, Any])
                except msgspec.DecodeError as error:
                    raise UsageError(f"{path}, line {number} is not a JSON object: {error}") from error


def _csv(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        yield from csv.DictReader(file)


def _parquet(path: Path) -> Iterator[dict[str, Any]]:
    errors, parquet = (plugins.package(name, extra="parquet") for name in ("pyarrow", "pyarrow.parquet"))
    try:
        yield from parquet.read_table(path).to_pylist()
    except errors.ArrowInvalid as error:
        raise UsageError(f"{path} is not a Parquet file: {error}") from error


_READERS: dict[str, Callable[[Path], Iterator[dict[str, Any]]]] = dict(
    zip(plugins.DATA, (_jsonl, _csv, _parquet), strict=True)
)
"""Suffix of a file to the function that reads it."""
