"""Rows of the table: name, value, unit, goal, ok and what stands beside it; and seeds in parallel processes."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, TypeVar

from bench import _table

T = TypeVar("T")
Row = _table.Row


def row(
    name: str,
    value: float | None,
    unit: str,
    *,
    least: float | None = None,
    most: float | None = None,
    beside: tuple[str, float | None] = ("", None),
) -> Row:
    """Returns a row as the benches have them; its goal is a text, because a value may have to be high or low."""
    goal, ok = None, None
    if least is not None:
        goal, ok = f">= {least:g}", value is not None and value >= least
    elif most is not None:
        goal, ok = f"<= {most:g}", value is not None and value <= most
    peer, peer_value = beside
    names = {"name": name, "value": value, "unit": unit, "goal": goal, "ok": ok}
    return {**names, "peer": peer or None, "peer_value": peer_value}


def listed(values: Iterable[float | None]) -> str:
    """Returns numbers as one text, "never" for None."""
    return " ".join(
        "never" if value is None else f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}" for value in values
    )


def by_seed(work: Callable[..., T], jobs: Sequence[tuple[Any, ...]]) -> list[T]:
    """Returns the results of a function of a module, one process per core; each job has a fresh one."""
    cores = int(os.environ.get("PROOF_CORES", os.cpu_count() or 1))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(cores, len(jobs)), mp_context=context) as pool:
        return list(pool.map(work, *zip(*jobs, strict=True)))


def main(title: str, measure: Callable[[bool], Iterable[Row]]) -> None:
    """Runs a part from the command line; the exit status is 1 if a goal is missed."""
    options = _table.arguments(title).parse_args()
    started = time.perf_counter()
    found = list(measure(options.quick))
    found.append(row(f"{title[0]}: wall time", time.perf_counter() - started, "s"))
    _table.put(title, found, as_json=options.json)
    raise SystemExit(int(any(one["ok"] is False for one in found)))
