"""What Prometheus is told, in its text format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from quintain.serve.episodes.host import Host
from quintain.serve.keys import ANYONE

TYPE = "text/plain; version=0.0.4; charset=utf-8"

Values = Mapping[tuple[tuple[str, str], ...], float]
"""By labels."""


class Part(msgspec.Struct):
    """What is to be had from one process alone.

    Attributes:
        episodes: How many there are of each environment and status.
        lost: Threads that hang in a tool.
    """

    episodes: list[tuple[str, str, int]]
    lost: int


def part(host: Host) -> Part:
    """Of this process."""
    now = Counter((live.env.name, live.status) for live in host.lives(ANYONE))
    return Part([(env, status, number) for (env, status), number in now.items()], host.crew.lost)


def text(host: Host, parts: Sequence[Part]) -> str:
    """Everything that is counted, in all processes."""
    counts = host.counts
    now: Counter[tuple[str, str]] = Counter()
    for one in parts:
        now.update({(env, status): number for env, status, number in one.episodes})
    lines = [
        *_gauge("quintain_episodes", "Episodes that the server holds.", _by(("environment", "status"), now)),
        *_gauge("quintain_episodes_limit", "Most episodes at once.", {(): host.limits.episodes}),
        *_gauge("quintain_workers", "Processes of the server.", {(): host.shard.count}),
        *_gauge("quintain_draining", "1 while the server shuts down.", {(): int(host.draining)}),
        *_gauge("quintain_threads_lost", "Threads that hang in a tool.", {(): sum(one.lost for one in parts)}),
        *_counter("quintain_episodes_begun_total", "Episodes begun.", _by_environment(counts.begun)),
        *_counter(
            "quintain_episodes_ended_total",
            "Episodes ended, by validity.",
            _by(("environment", "validity"), counts.ended),
        ),
        *_counter(
            "quintain_failures_total",
            "Episodes without a reward, by who is to blame.",
            {
                (("environment", env), ("kind", kind), ("part", part)): number
                for (env, part, kind), number in counts.failed.items()
            },
        ),
        *_counter("quintain_turns_total", "Turns of ended episodes.", _by_environment(counts.turns)),
        *_gauge("quintain_scores", "Scores of valid episodes, added up.", _by_environment(counts.scores)),
    ]
    return "\n".join(lines) + "\n"


def _by(labels: tuple[str, str], counts: Mapping[tuple[str, str], float]) -> Values:
    return {tuple(zip(labels, names, strict=True)): number for names, number in counts.items()}


def _by_environment(counts: Mapping[str, float]) -> Values:
    return {(("environment", env),): number for env, number in counts.items()}


def _gauge(name: str, about: str, values: Values) -> Iterable[str]:
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} gauge"
    yield from _lines(name, values)


def _counter(name: str, about: str, values: Values) -> Iterable[str]:
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} counter"
    yield from _lines(name, values)


def _lines(name: str, values: Values) -> Iterable[str]:
    for labels, value in sorted(values.items()):
        told = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels)
        yield f"{name}{{{told}}} {value:.17g}" if told else f"{name} {value:.17g}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
