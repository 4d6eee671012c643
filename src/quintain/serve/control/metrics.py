"""What Prometheus is told, in its text format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from quintain.serve.host import Host
from quintain.serve.keys import ANYONE

TYPE = "text/plain; version=0.0.4; charset=utf-8"

Values = Mapping[tuple[tuple[str, str], ...], float]
"""By labels."""


def text(host: Host) -> str:
    """Everything that is counted."""
    counts = host.counts
    now = Counter((live.env.name, live.status) for live in host.lives(ANYONE))
    by_status: Values = {(("environment", env), ("status", status)): n for (env, status), n in now.items()}
    ended: Values = {(("environment", env), ("validity", how)): n for (env, how), n in counts.ended.items()}
    failed: Values = {
        (("environment", env), ("kind", kind), ("part", part)): n for (env, part, kind), n in counts.failed.items()
    }
    lines = [
        *_gauge("quintain_episodes", "Episodes that the server holds.", by_status),
        *_gauge("quintain_episodes_limit", "Most episodes at once.", {(): host.limits.episodes}),
        *_gauge("quintain_draining", "1 while the server shuts down.", {(): int(host.draining)}),
        *_gauge("quintain_threads_lost", "Threads that hang in a tool.", {(): host.crew.lost}),
        *_counter("quintain_episodes_begun_total", "Episodes begun.", _by_environment(counts.begun)),
        *_counter("quintain_episodes_ended_total", "Episodes ended, by validity.", ended),
        *_counter("quintain_failures_total", "Episodes without a reward, by who is to blame.", failed),
        *_counter("quintain_turns_total", "Turns of ended episodes.", _by_environment(counts.turns)),
        *_counter("quintain_scores_total", "Scores of valid episodes, added up.", _by_environment(counts.scores)),
    ]
    return "\n".join(lines) + "\n"


def _by_environment(counts: Mapping[str, int] | Mapping[str, float]) -> Values:
    return {(("environment", env),): n for env, n in counts.items()}


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
        yield f"{name}{{{told}}} {value}" if told else f"{name} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
