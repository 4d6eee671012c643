"""Wall clock that is days ahead in one child process, by a preloaded C library.

It shifts `time`, `gettimeofday` and `clock_gettime(CLOCK_REALTIME)` but not monotonic clocks, so waiting takes as long
as ever. The library is compiled once per machine with the installed C compiler, into the cache folder that
`QUINTAIN_CACHE` names (`~/.cache/quintain` if it is unset). Without a compiler no clock can be shifted.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from quintain.errors import UsageError

SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#define REAL(name, ...) \
    static int (*real)(__VA_ARGS__); \
    if (!real) real = (int (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

static time_t ahead(void) {
    static double seconds; static int known;
    const char *days = known++ ? 0 : getenv("QUINTAIN_CLOCK_DAYS");
    if (days) seconds = atof(days) * 86400.0 + (atof(days) < 0 ? -0.5 : 0.5);
    known = 1;
    return (time_t)seconds;
}
int clock_gettime(clockid_t clock, struct timespec *now) {
    REAL("clock_gettime", clockid_t, struct timespec *);
    int failed = real(clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += ahead();
    return failed;
}
int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    REAL("gettimeofday", struct timeval *, void *);
    int failed = real(now, zone);
    now->tv_sec += failed ? 0 : ahead();
    return failed;
}
time_t time(time_t *result) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return result ? (*result = now.tv_sec) : now.tv_sec;
}
"""


def cache() -> Path:
    return Path(os.environ.get("QUINTAIN_CACHE") or Path.home() / ".cache" / "quintain") / "audit"


def shim() -> Path | None:
    """Returns the path of the library, compiled at first use; None without a C compiler or preloading."""
    return _shim(cache())


@functools.cache
def _shim(folder: Path) -> Path | None:
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        return None
    path = folder / f"clock-{hashlib.sha256(SOURCE.encode()).hexdigest()[:16]}.so"
    if path.is_file():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as beside:  # Renamed at the end, so that processes may do the same.
        source, built = Path(beside) / "clock.c", Path(beside) / path.name
        source.write_text(SOURCE, "ascii")
        command = [compiler, "-O1", "-shared", "-fPIC", "-o", str(built), str(source), "-ldl"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise UsageError(f"{' '.join(command)} failed: {done.stderr[-1000:]}")
        return built.rename(path)


def variables(days: float) -> dict[str, str]:
    """Returns the variables of a process whose clock is `days` ahead; raises UsageError without a C compiler."""
    if not days:
        return {}
    library = shim()
    if library is None:
        raise UsageError("a clock that is shifted needs a C compiler (gcc or cc) on Linux, and there is none here")
    return {"LD_PRELOAD": str(library), "QUINTAIN_CLOCK_DAYS": str(days)}
