"""Shell completion of environments, agents, splits, finding classes and runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import click
from click.shell_completion import CompletionItem

TWINS = (
    "stale_cache", "reward_hack", "false_resolution", "silent_default", "reset_leak", "reward_clipping",
    "data_realism", "action_drift",
)  # fmt: skip
"""Classes of the bugs that `--twin` plants."""

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _completer(find: Callable[[click.Context], Iterable[str]], *, or_file: bool = False) -> Completer:
    """Returns click's callback for the texts that `find` yields and, where none fits, for files."""

    def complete(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        found = [CompletionItem(text) for text in find(ctx) if text.startswith(incomplete)]
        return found if found or not or_file else [CompletionItem(incomplete, type="file")]

    return complete


def _names(group: str) -> Callable[[click.Context], Iterable[str]]:
    def find(_ctx: click.Context) -> Iterable[str]:
        from quintain import plugins

        return plugins.names(group)

    return find


def _splits(_ctx: click.Context) -> Iterable[str]:
    """Returns the splits of an installed environment; a file's code is not run to complete a word.

    The line comes from the shell, because click drops the arguments before an option that lacks its value.
    """
    from quintain import plugins

    words, known = os.environ.get("COMP_WORDS", "").split(), plugins.names("environments")
    return next((plugins.environment(word).splits for word in words if word in known), ())


def _classes(_ctx: click.Context) -> Iterable[str]:
    from quintain.audit.kernel.finding import CLASSES

    return CLASSES


def _runs(_ctx: click.Context) -> Iterator[str]:
    """Yields the run folders in the current folder, and in folders there such as `runs`, the latest first."""
    found = [file for pattern in ("*/run.json", "*/*/run.json", "*/*/*/run.json") for file in Path().glob(pattern)]
    yield from (str(file.parent) for file in sorted(found, key=lambda file: -file.stat().st_mtime))


environments = _completer(_names("environments"), or_file=True)
agents = _completer(_names("models"), or_file=True)
splits = _completer(_splits)
classes = _completer(_classes)
twins = _completer(lambda _ctx: TWINS)
runs = _completer(_runs, or_file=True)
