"""Program that runs hidden tests inside a sandbox; it is sent there as text and imports only the standard library.

Two processes take part in a test. The driver holds the tests; the target holds the code under test, and gets nothing
but source to run or a function to call. Values travel as tagged JSON, so what the tests compare are plain built-in
objects: an object with its own `__eq__` cannot arrive. The driver is not dumpable (`prctl(2)`), so a process of the
same user can neither read its memory nor open its files, and its report carries a word that came in its standard input.

The targets are forks of a third process, the nursery, which the driver forks before it reads the tests. So a target
costs a fork instead of a start of Python, and its memory has never held a test.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import ctypes
import functools
import json
import os
import selectors
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

PR_SET_DUMPABLE = 4
START_S = 5.0
"""Seconds in which the nursery must start a target."""
LONGEST = 16 * 2**20
"""Bytes of one answer of the target; a longer one counts as none."""
SEQUENCES: dict[str, Any] = {"l": list, "t": tuple, "s": set, "f": frozenset, "d": dict}
SCALARS: tuple[tuple[str, Any, Callable[[Any], str]], ...] = (
    ("i", int, lambda value: hex(int.__int__(value))),
    ("r", float, float.__repr__),
    ("c", complex, complex.__repr__),
    ("b", bytes | bytearray, lambda value: bytes(value).hex()),
)


HELD: list[Any] = []
"""Objects of the target that the driver has handles of."""
ROLE = {"driver": True}
"""Role of this process: `driver` is True in the driver, False in a target."""


class Handle:
    """Object in the other process. It equals only itself, and can be passed back."""

    def __init__(self, number: int) -> None:
        self.number = number


def pack(value: Any, depth: int = 0) -> Any:
    """Returns plain data as tagged JSON; an object of a subclass travels as its base type.

    An object of another class stays in the target; a `Handle` travels in its place.

    Raises:
        TypeError: The value is nested more than 200 levels deep.
    """
    if depth > 200:
        raise TypeError("the value is nested too deeply")
    if value is None or isinstance(value, bool | str):
        return str.__str__(value) if isinstance(value, str) else value
    for tag, base, form in SCALARS:
        if isinstance(value, base):
            return [tag, form(value)]
    for tag, base in SEQUENCES.items():
        if isinstance(value, base):  # Items are read as the base type does, whatever the subclass says.
            items = map(tuple, base.items(value)) if tag == "d" else base.__iter__(value)
            return [tag, [pack(one, depth + 1) for one in items]]
    return _reference(value)


def _reference(value: object) -> list[Any]:
    """Returns the name of a built-in class, or the handle of any other object."""
    name = value.__name__ if isinstance(value, type) else ""
    if name and getattr(builtins, name, None) is value:
        return ["y", name]
    if not isinstance(value, Handle):
        HELD.append(value)
    return ["h", value.number if isinstance(value, Handle) else len(HELD) - 1]


def unpack(value: Any) -> Any:
    """Returns what `pack` was given, of built-in types."""
    if value is None or isinstance(value, bool | str):
        return value
    tag, content = value
    if tag == "h":
        return Handle(content) if ROLE["driver"] else HELD[content]
    if tag in SEQUENCES:
        return SEQUENCES[tag](unpack(one) for one in content)
    scalars: dict[str, Callable[[str], Any]] = {"r": float, "c": complex, "b": bytes.fromhex}
    scalars |= {"i": lambda text: int(text, 16), "y": functools.partial(getattr, builtins)}
    return scalars[tag](content)


# -- the target


def evaluate(source: str, space: dict[str, Any]) -> Any:
    """Runs source and returns the value of its last expression; None if it ends with another statement."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<run>", "exec"), space)  # noqa: S102  # It runs in a sandbox, as all of this file.
    if not isinstance(last, ast.Expr):
        return None
    return eval(compile(ast.Expression(last.value), "<run>", "eval"), space)  # noqa: S307


def serve() -> None:
    """Answers jobs from standard input, one line each; what the code prints goes to standard error."""
    out, jobs = os.dup(1), os.fdopen(os.dup(0), "rb")
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.path[:0] = [str(Path.cwd() / "src"), str(Path.cwd())]
    space: dict[str, Any] = {"__name__": "solution"}
    for line in jobs:
        job = json.loads(line)
        try:
            if "run" in job:
                value = evaluate(job["run"], space)
            else:
                value = space[job["call"]](*unpack(job["args"]), **unpack(job["kwargs"]))
            answer = {"value": pack(value)}
        except BaseException as error:  # noqa: BLE001  # Tests may expect it; the driver raises it again.
            base = next(kind for kind in type(error).__mro__ if kind.__module__ == "builtins")
            answer = {"error": base.__name__, "type": type(error).__name__, "message": str(error)[:2000]}
        data = memoryview(json.dumps(answer).encode() + b"\n")
        while data:
            data = data[os.write(out, data) :]


# -- the driver


class TargetGoneError(Exception):
    """The process of the code under test ended, hung, or wrote something else than an answer."""


class Target:
    """The code under test in a process of its own.

    Args:
        nursery: Socket of the nursery.
        code: Source that is run first; its names are those that tests call.
        seconds: Longest time of one answer.
    """

    def __init__(self, nursery: socket.socket, *, code: str, seconds: float) -> None:
        self._seconds = seconds
        inward, self._jobs = os.pipe()
        self._answers, outward = os.pipe()
        self._pid = 0
        self._rest = b""
        try:
            socket.send_fds(nursery, [b"t"], [inward, outward])
            self._pid = int(nursery.recv(16) or b"0")
        except OSError:
            raise TargetGoneError("the code ended the process that starts it") from None
        finally:
            os.close(inward)
            os.close(outward)
        if code:
            self.ask({"run": code})

    def ask(self, job: dict[str, Any]) -> Any:
        """Sends one job and returns the value of its answer, or raises its exception."""
        data = memoryview(json.dumps(job).encode() + b"\n")
        try:
            while data:
                data = data[os.write(self._jobs, data) :]
        except BrokenPipeError:
            raise TargetGoneError("the code ended before it answered") from None
        try:
            answer = json.loads(self._line())
            if "error" not in answer:
                return unpack(answer["value"])
            kind, message = getattr(builtins, answer["error"], Exception), f"{answer['type']}: {answer['message']}"
        except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
            raise TargetGoneError(f"the code wrote an answer that cannot be read: {error!r}") from None
        if not (isinstance(kind, type) and issubclass(kind, Exception)):
            raise TargetGoneError(f"the code raised {message}")
        raise _raised(kind, message)

    def _line(self) -> bytes:
        """Reads one line, within the time and the size."""
        ends = time.monotonic() + self._seconds
        with selectors.DefaultSelector() as ready:
            ready.register(self._answers, selectors.EVENT_READ)
            while b"\n" not in self._rest:
                if not ready.select(max(0.0, ends - time.monotonic())):
                    raise TargetGoneError(f"the code gave no answer within {self._seconds:g} s")
                piece = os.read(self._answers, 1 << 16)
                if not piece:
                    raise TargetGoneError("the code ended before it answered")
                self._rest += piece
                if len(self._rest) > LONGEST:
                    raise TargetGoneError(f"the code wrote more than {LONGEST} bytes as one answer")
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def close(self) -> None:
        """Ends the process and those of its session."""
        os.close(self._jobs)
        os.close(self._answers)
        if self._pid > 1:  # A nursery that the code has taken over may name no process, or this one's group.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._pid, signal.SIGKILL)


def nursery() -> socket.socket:
    """Forks the process that forks the targets, and returns the socket to it."""
    own, its = socket.socketpair()
    if os.fork():
        its.close()
        own.settimeout(START_S)
        return own
    own.close()
    quiet = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):  # The tests come by the first, the report leaves by the second.
        os.dup2(quiet, number)
    os.close(quiet)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    its.sendall(b"ready")
    while True:
        said, pipes, _, _ = socket.recv_fds(its, 1, 2)
        if not said:
            os._exit(0)
        if pid := os.fork():
            for number in pipes:
                os.close(number)
            its.sendall(b"%d" % pid)
            continue
        its.close()
        os.setsid()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number, pipe in enumerate(pipes):
            os.dup2(pipe, number)
            os.close(pipe)
        ROLE["driver"] = False
        serve()
        os._exit(0)


def _raised(kind: type[Exception], message: str) -> Exception:
    try:
        return kind(message)
    except TypeError:  # UnicodeDecodeError and its like need more arguments.
        return Exception(message)


def failure(test: dict[str, str], payload: dict[str, Any], source: socket.socket) -> str:
    """Runs one test on a new target and returns why it failed; empty if it passed."""
    target = None
    space: dict[str, Any] = {"__name__": "__test__"}
    try:
        target = Target(source, code=payload["code"], seconds=payload["seconds"])
        started = target

        def run(source: str) -> Any:
            return started.ask({"run": source})

        def proxy(name: str) -> Callable[..., Any]:
            def call(*args: Any, **kwargs: Any) -> Any:
                job = {"call": name, "args": pack(args), "kwargs": pack(kwargs)}
                return started.ask(job)

            return call

        space["run"] = run
        exec(compile(payload["setup"], "<setup>", "exec"), space)  # noqa: S102
        space |= {name: proxy(called) for name, called in payload["names"].items()}
        exec(compile(test["code"], test["name"], "exec"), space)  # noqa: S102
    except Exception as error:  # noqa: BLE001  # A test may fail with any.
        lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == test["name"]]
        place = f"line {lines[-1]}: " if lines else ""
        return f"{place}{type(error).__name__}: {error}"[:500] or "failed"
    finally:
        if target is not None:
            target.close()
    return ""


def main() -> None:
    """Reads the tests from standard input, runs each, and writes one line of JSON."""
    source = nursery()
    source.recv(5)  # It has let go of the standard input.
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    payload = cast(dict[str, Any], json.load(sys.stdin))
    report = os.dup(1)
    os.dup2(2, 1)  # What a test prints is not the report.
    found: dict[str, Any] = {"word": payload["word"]}
    try:
        exec(compile(payload["setup"], "<setup>", "exec"), {"__name__": "__test__"})  # noqa: S102
        found["outcomes"] = [[test["name"], failure(test, payload, source)] for test in payload["tests"]]
    except Exception as error:  # noqa: BLE001  # It is the mistake of the tests' author.
        found["broken"] = repr(error)[:500]
    os.write(report, json.dumps(found).encode() + b"\n")


if __name__ == "__main__":
    main()
