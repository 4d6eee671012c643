"""The same question to the same contract in other processes, where sets have another order."""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import sys
from collections.abc import Mapping, Sequence
from subprocess import PIPE, CompletedProcess, Popen
from types import MappingProxyType
from typing import Any

HASH_SEEDS = (1, 2)


def ask(contract: object, question: str) -> list[Any]:
    """Returns the results of a contract's method in fresh processes, one per hash seed.

    Args:
        contract: An instance of a class at the top level of a file, or in such a class.
        question: Name of a method without arguments that returns JSON data.

    Raises:
        RuntimeError: The contract cannot be found there, or its method raised.
    """
    type_ = type(contract)
    module, file = type_.__module__, sys.modules[type_.__module__].__file__
    where = {"module": module, "file": file, "qualname": type_.__qualname__, "question": question}
    program = (
        f"import sys; sys.path[:] = {sys.path!r}\nfrom quintain.testing.elsewhere import answer\nanswer(**{where!r})"
    )
    done = fresh_processes([sys.executable, "-c", program], HASH_SEEDS)
    for one in done:
        if one.returncode:
            raise RuntimeError(f"{type_.__qualname__}.{question}() in another process:\n{one.stderr}")
    return [json.loads(one.stdout.splitlines()[-1]) for one in done]


def answer(*, module: str, file: str, qualname: str, question: str) -> None:
    """Prints, as the last line, what the contract's method returns here."""
    spec = importlib.util.spec_from_file_location(module, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot import {file}")
    loaded = sys.modules[module] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    contract: Any = functools.reduce(getattr, qualname.split("."), loaded)
    print(f"\n{json.dumps(getattr(contract(), question)())}")  # noqa: T201 (the other process reads it)


def fresh_processes(
    command: Sequence[str],
    hash_seeds: Sequence[int],
    *,
    variables: Mapping[str, str] = MappingProxyType({}),
    pass_fds: Sequence[int] = (),
) -> list[CompletedProcess[str]]:
    """Runs one command in a fresh process per hash seed, all at once, and waits for them.

    Args:
        command: Program and arguments, such as `[sys.executable, "-m", "quintain", "replay", folder, "--here"]`.
        hash_seeds: Values of PYTHONHASHSEED, 0 to 4294967295.
        variables: More environment variables.
        pass_fds: File descriptors that the processes inherit.
    """
    names = {**os.environ, **variables}
    started = [
        Popen(
            command,
            env=names | {"PYTHONHASHSEED": str(seed)},
            stdout=PIPE,
            stderr=PIPE,
            text=True,
            pass_fds=pass_fds,
        )
        for seed in hash_seeds
    ]
    try:
        outputs = [process.communicate() for process in started]
    finally:
        for process in started:
            process.kill()  # What has ended already stays as it is.
    return [
        CompletedProcess(command, process.returncode, out, err)
        for process, (out, err) in zip(started, outputs, strict=True)
    ]
