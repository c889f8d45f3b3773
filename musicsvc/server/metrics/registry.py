"""What is counted of the server's work, for Prometheus: requests as they end, other figures every second."""

from __future__ import annotations

import platform
import threading
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, values
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from musicsvc import __version__
from musicsvc.errors import Failure
from musicsvc.server.process.proc_stats import Processes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from prometheus_client.metrics_core import Metric

    from musicsvc.server.call import Call
    from musicsvc.server.metrics.multiprocess import Share

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OTHER = "other"  # a method that is none of these, and what was no HTTP at all
UNKNOWN = "unknown"  # the route of what no row of the table answers
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """The figures of one process, or, where it has a share, those of all workers of the server together."""

    def __init__(self, share: Share | None = None) -> None:
        """`share`: joined already by this process; without one it counts by itself, in a registry of its own."""
        disable_created_metrics()  # type: ignore[no-untyped-call]
        shown = CollectorRegistry()
        if share is None:
            values.ValueClass = values.MutexValue  # whatever the environment says
            self._own = shown
        else:
            self._own = CollectorRegistry()
            MultiProcessCollector(shown, path=str(share.folder))  # type: ignore[no-untyped-call]
        self._shown = shown
        self._once = Readings()
        shown.register(self._once)
        shown.register(Processes(share.pids if share is not None else None))
        self._requests = Counter(
            "musicsvc_requests", "Requests answered.", ("method", "route", "status"), registry=self._own
        )
        self._durations = Histogram(
            "musicsvc_request_seconds",
            "From a request's head to its answer.",
            ("method", "route"),
            buckets=BUCKETS,
            registry=self._own,
        )
        self._refusals = Counter(
            "musicsvc_requests_refused",
            "Requests refused by a limit (429), or for want of capacity (503, limit busy).",
            ("limit",),
            registry=self._own,
        )
        self._called: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self._gauges: list[tuple[Gauge, Callable[[], float]]] = []
        self._counters: list[tuple[Counter, Callable[[], float]]] = []
        self._known: dict[Counter, float] = {}
        self._refreshing = threading.Lock()

    def __call__(self, call: Call) -> None:
        """Count a request that is answered."""
        method = call.method if call.method in METHODS else OTHER
        route = UNKNOWN if call.route is None else call.route.path
        key = (method, route, call.status)
        found = self._called.get(key)
        if found is None:
            found = self._requests.labels(*key), self._durations.labels(method, route)
            self._called[key] = found
        requests, durations = found
        requests.inc()
        if call.method:  # what was no HTTP has no time either
            durations.observe(call.milliseconds / 1000)
        if call.refused_by is not None:
            self._refusals.labels(call.refused_by).inc()

    def gauge(self, name: str, about: str, read: Callable[[], float]) -> None:
        """Show what this process has now; of several workers the sum. `read` neither waits nor fails."""
        gauge = Gauge(name, about, multiprocess_mode="livesum", registry=self._own)
        self._gauges.append((gauge, read))

    def counter(self, name: str, about: str, read: Callable[[], float]) -> None:
        """Show what this process has counted so far; of several workers the sum. `read` neither waits nor fails."""
        counter = Counter(name, about, registry=self._own)
        self._counters.append((counter, read))

    def once(self, name: str, about: str, read: Callable[[], float | None]) -> None:
        """Show what is the same for every worker, read when it is asked for; None, OSError, Failure: it is left out."""
        self._once.add(name, about, read)

    async def refresh(self) -> None:
        """Read the figures that are counted elsewhere."""
        self._read()

    def text(self) -> bytes:
        """All figures in Prometheus' text format; it reads files, which the event loop never does."""
        self._read()
        return generate_latest(self._shown)

    def _read(self) -> None:
        with self._refreshing:
            for gauge, read in self._gauges:
                gauge.set(read())
            for counter, read in self._counters:
                now = read()
                counter.inc(max(now - self._known.get(counter, 0.0), 0.0))
                self._known[counter] = now


class Readings(Collector):
    """What is read at the moment it is asked for."""

    def __init__(self) -> None:
        self._readings: list[tuple[str, str, Callable[[], float | None]]] = []

    def add(self, name: str, about: str, read: Callable[[], float | None]) -> None:
        """One more figure."""
        self._readings.append((name, about, read))

    def collect(self) -> Iterable[Metric]:
        """The figures of this moment."""
        build = GaugeMetricFamily("musicsvc_build_info", "What runs.", labels=("version", "python"))
        build.add_metric((__version__, platform.python_version()), 1)
        yield build
        for name, about, read in self._readings:
            try:
                value = read()
            except (OSError, Failure):
                continue
            if value is not None:
                yield GaugeMetricFamily(name, about, value=value)
