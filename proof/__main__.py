"""All parts, or some: `python -m proof [--part b] [--json] [--quick] [--picture FILE] [--from FILE]`."""

from __future__ import annotations

import importlib
import json
import time
from pathlib import Path

from bench import _table
from proof.picture import svg
from proof.rows import Row, row

PARTS = ("b", "c", "e", "d", "a")


def main() -> int:
    """Runs parts and returns the exit status: 1 if a goal is missed."""
    parser = _table.arguments("What environments teach")
    parser.add_argument("--part", action="append", choices=PARTS, help="run this part; default: all")
    parser.add_argument("--picture", type=Path, help="write the rows with a goal as SVG")
    parser.add_argument("--rows", type=Path, nargs="+", default=[], help="take the rows of --json files, run nothing")
    options = parser.parse_args()
    rows: list[Row] = [one for file in options.rows for one in json.loads(file.read_text())]
    for part in () if options.rows else options.part or PARTS:
        module, started = importlib.import_module(f"proof.{part}"), time.perf_counter()
        try:
            rows += module.measure(options.quick)
        except ModuleNotFoundError as error:
            _table.note(f"part {part} needs the extra `trl` (make proof installs it): {error}")
            rows.append(row(f"{part}: ran", 0, "of 1", least=1))
        rows.append(row(f"{part}: wall time", time.perf_counter() - started, "s"))
    _table.put("What environments teach", rows, as_json=options.json)
    if options.picture:
        options.picture.write_text(svg(rows))
        _table.note(f"drawn: {options.picture}")
    return int(any(one["ok"] is False for one in rows))


if __name__ == "__main__":
    raise SystemExit(main())
