"""Cost of `import quintain`: time, modules and memory.

All candidates in turn, twenty rounds of it, and the least of each: CPU time as the system accounts it to the finished
child. msgspec imports typing_extensions where it is installed, so that is named. The bytecode of every module is in its
cache, as after any first run. verifiers is measured in the interpreter that QUINTAIN_BENCH_PEERS names, if it does,
against a bare start of that interpreter.
"""

from __future__ import annotations

import importlib.util
import resource
import subprocess
import sys
from collections.abc import Iterator, Sequence

from _table import Row, has, main, note, peers, row

ROUNDS = 20
GOAL_MS = 60.0


def spent(python: str, statement: str) -> float:
    """Seconds of CPU of one fresh interpreter."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([python, "-c", statement], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def more(python: str, statements: Sequence[str], rounds: int) -> list[float]:
    """Milliseconds of CPU that each statement costs beyond a bare interpreter."""
    candidates = ["pass", *statements]
    for statement in candidates:  # fills the caches, of bytecode and of the disk
        spent(python, statement)
    runs = [[spent(python, statement) for statement in candidates] for _ in range(rounds)]
    bare, *others = (min(run[n] for run in runs) for n in range(len(candidates)))
    return [(other - bare) * 1000 for other in others]


def measure(quick: bool) -> Iterator[Row]:  # noqa: FBT001
    rounds = 1 if quick else ROUNDS
    extensions = "with" if importlib.util.find_spec("typing_extensions") else "without"
    modules = ["quintain", "msgspec", "asyncio", "msgspec, asyncio"]
    ours, *theirs = more(sys.executable, [f"import {module}" for module in modules], rounds)
    name = f"import quintain, CPU, {extensions} typing_extensions"
    yield row(name, ours, "ms", goal=GOAL_MS, peer="import msgspec", peer_value=theirs[0])
    for module, value in zip(modules[1:], theirs, strict=True):
        yield row(f"import {module}, CPU", value, "ms")
    if not has(peers(), "verifiers"):
        note("verifiers is not installed (QUINTAIN_BENCH_PEERS names the interpreter that has it)")
        yield row("import verifiers.v1, CPU", None, "ms")
        return
    (value,) = more(peers(), ["import verifiers.v1"], 1 if quick else 3)
    yield row("import verifiers.v1, CPU", value, "ms")


if __name__ == "__main__":
    main("Import", measure)
