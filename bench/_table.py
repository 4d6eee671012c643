"""Tables, arguments and peers shared by all benches.

CPU time is measured, not wall time, and the least of several runs is taken: on a shared machine everything else adds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

Row = dict[str, Any]
"""name, value, unit, goal, ok, peer, peer_value; `ok` is null where nothing was measured or no goal is set."""


def row(
    name: str,
    value: float | None,
    unit: str,
    *,
    goal: float | None = None,
    peer: str | None = None,
    peer_value: float | None = None,
) -> Row:
    """One measurement; a goal is the most that `value` may be. Beside it the same work by a peer, or a limit."""
    ok = None if goal is None or value is None else value <= goal
    return {
        "name": name,
        "value": value,
        "unit": unit,
        "goal": goal,
        "ok": ok,
        "peer": peer,
        "peer_value": peer_value,
    }


def main(title: str, measure: Callable[[bool], Iterable[Row]]) -> None:
    """Runs a bench from the command line; `measure` receives True for tiny sizes."""
    options = arguments(title).parse_args()
    put(title, list(measure(options.quick)), as_json=options.json)


def arguments(title: str) -> argparse.ArgumentParser:
    """Parses the arguments common to all benches; a bench may add its own."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--json", action="store_true", help="print the rows as one JSON list and nothing else")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: shows that the bench works, measures nothing")
    return parser


def put(title: str, rows: list[Row], *, as_json: bool) -> None:
    """Print the rows as they were asked for."""
    if as_json:
        print(json.dumps(rows, indent=1))
    else:
        show(title, rows)


def show(title: str, rows: list[Row]) -> None:
    """Print the rows as a table."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    table.add_column("measured")
    table.add_column("value", justify="right")
    table.add_column("unit")
    table.add_column("goal", justify="right")
    table.add_column("ok")
    table.add_column("beside it")
    table.add_column("its value", justify="right")
    for one in rows:
        ok = {True: "yes", False: "NO", None: ""}[one["ok"]]
        goal = one["goal"] or "" if isinstance(one["goal"], str | None) else f"<= {_number(one['goal'])}"
        table.add_row(
            one["name"], _number(one["value"]), one["unit"], goal, ok, one["peer"] or "", _number(one["peer_value"])
        )
    wide = None if sys.stdout.isatty() else 150
    Console(width=wide).print(table)


def note(text: str) -> None:
    """Say something that is not a measurement; standard output belongs to the rows."""
    print(text, file=sys.stderr)


def cpu(work: Callable[[], object], *, repeats: int) -> float:
    """Seconds of CPU that `work` takes, this process's own: the least of `repeats` runs."""
    spent: list[float] = []
    for _ in range(repeats):
        started = time.process_time()
        work()
        spent.append(time.process_time() - started)
    return min(spent)


def peers() -> str:
    """The interpreter in which peers are looked for."""
    return os.environ.get("QUINTAIN_BENCH_PEERS", sys.executable)


def has(python: str, module: str) -> bool:
    """True if an interpreter has a module; does not import it."""
    code = f"import importlib.util as u, sys; sys.exit(u.find_spec({module!r}) is None)"
    return subprocess.run([python, "-c", code], check=False, capture_output=True).returncode == 0


def child(script: str, *arguments: object) -> Any:
    """Returns the output of a neighbouring script, run by the peers' interpreter.

    None, and a note on standard error, when it fails.
    """
    command = [peers(), str(Path(__file__).with_name(script)), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return json.loads(done.stdout.splitlines()[-1])
    note(f"{script}: exit status {done.returncode}: {done.stderr.strip()[-300:]}")
    return None


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.4g}"
