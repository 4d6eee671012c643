"""Metrics in the text format of Prometheus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric

from quintain.serve.episodes.host import Host
from quintain.serve.http.keys import ANYONE

TYPE = "text/plain; version=0.0.4; charset=utf-8"


def text(host: Host) -> bytes:
    """Returns all counters, and the gauges as they are now."""
    now = CollectorRegistry()
    now.register(_Now(host))
    return generate_latest(now) + generate_latest(host.counts.registry)


class _Now(NamedTuple):
    """Collector of the gauges."""

    host: Host

    def collect(self) -> Iterator[Metric]:
        host = self.host
        episodes = GaugeMetricFamily(
            "quintain_episodes", "Episodes that the server holds.", labels=["environment", "status"]
        )
        for labels, number in Counter((live.env.name, live.status) for live in host.lives(ANYONE)).items():
            episodes.add_metric(labels, number)
        yield episodes
        yield GaugeMetricFamily("quintain_episodes_limit", "Most episodes at once.", value=host.limits.episodes)
        yield GaugeMetricFamily("quintain_draining", "1 while the server shuts down.", value=int(host.draining))
        yield GaugeMetricFamily("quintain_threads_lost", "Threads that hang in a tool.", value=host.executor.abandoned)
