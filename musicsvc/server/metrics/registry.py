"""Prometheus metrics of the server: requests are counted when they end, other values are read every second."""

import platform
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    values,
)
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from musicsvc import __version__
from musicsvc.errors import Failure
from musicsvc.server.call import ACCEPTED, FAILED_SIGN_IN, Call
from musicsvc.server.metrics.multiprocess import SharedMetrics


class WorkerProcessCollector(Collector):
    """Collects metrics of each worker process, such as its memory. The names of the metrics begin with `process_`."""

    def __init__(self, pids: Callable[[], Mapping[str, str]] | None) -> None:
        """`pids`: returns the process ids by worker number. By default, this process is worker 0, the only one."""
        self._pids = pids or (lambda: {"0": "self"})

    def collect(self) -> Iterable[Metric]:
        """Return the current metrics, each labelled with the worker number."""
        families: dict[str, Metric] = {}
        for worker, pid in self._pids().items():
            for found in ProcessCollector(pid=partial(str, pid), registry=None).collect():
                family = families.setdefault(found.name, Metric(found.name, found.documentation, found.type))
                for sample in found.samples:
                    family.add_sample(sample.name, {"worker": worker}, sample.value)
        return families.values()


METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OTHER = "other"  # any other method, and invalid HTTP
UNKNOWN = "unknown"  # the route label of requests that match no route
MILLISECONDS = (1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000)
BUCKETS = tuple(bound / 1000 for bound in MILLISECONDS)


class Tally:
    """The numbers of requests with one method, route and status, by duration, of which some are not reported yet.

    Adding to them takes a fifth of the time that the library's counters and histograms take.
    """

    def __init__(self, requests: Counter, durations: Histogram | None) -> None:
        self._requests, self._durations = requests, durations
        self.counts, self.milliseconds = [0] * (len(BUCKETS) + 1), 0.0
        self._reported, self._reported_milliseconds = [*self.counts], 0.0

    def report(self) -> None:
        """Add what is new to the library's numbers. Calls take turns."""
        counts, milliseconds = [*self.counts], self.milliseconds
        if counts == self._reported:
            return
        new = [now - before for now, before in zip(counts, self._reported, strict=True)]
        self._requests.inc(sum(new))
        if self._durations is not None:
            self._durations._sum.inc((milliseconds - self._reported_milliseconds) / 1000)  # noqa: SLF001 - all at once
            for bucket, number in zip(self._durations._buckets, new, strict=True):  # noqa: SLF001 - the same
                bucket.inc(number)
        self._reported, self._reported_milliseconds = counts, milliseconds


class Metrics:
    """The metrics of one process or, with `shared`, of all workers of the server together."""

    def __init__(self, shared: SharedMetrics | None = None) -> None:
        """`shared`: the metrics files of all workers, which this process has joined; None if it is the only process."""
        disable_created_metrics()
        shown = CollectorRegistry()
        if shared is None:
            values.ValueClass = values.MutexValue  # even if the environment asks for multiprocess mode
            self._own = shown
        else:
            self._own = CollectorRegistry()
            MultiProcessCollector(shown, path=str(shared.folder))
        self._shown = shown
        self._on_scrape = ScrapeCollector()
        shown.register(self._on_scrape)
        shown.register(WorkerProcessCollector(shared.pids if shared is not None else None))
        self._requests = Counter(
            "musicsvc_requests", "Requests answered.", ("method", "route", "status"), registry=self._own
        )
        self._durations = Histogram(
            "musicsvc_request_seconds",
            "Time from the arrival of a request's head to its response.",
            ("method", "route"),
            buckets=BUCKETS,
            registry=self._own,
        )
        self._refusals = Counter(
            "musicsvc_requests_refused",
            "Requests refused by a rate limit (429), or for lack of capacity (503, limit busy).",
            ("limit",),
            registry=self._own,
        )
        self._plays_accepted = Counter("musicsvc_plays_accepted", "Plays accepted by POST /plays.", registry=self._own)
        self._plays_refused = Counter(
            "musicsvc_plays_refused", "Plays refused by POST /plays.", ("reason",), registry=self._own
        )
        self._failed_sign_ins = Counter(
            "musicsvc_sign_ins_failed", "Sign-ins with a wrong e-mail or password.", registry=self._own
        )
        self._tallies: dict[tuple[str, str, int], Tally] = {}
        self._gauges: list[tuple[Gauge, Callable[[], float]]] = []
        self._counters: list[tuple[Counter, Callable[[], float]]] = []
        self._counted: dict[Counter, float] = {}
        self._refreshing = threading.Lock()

    def __call__(self, call: Call) -> None:
        method = call.method if call.method in METHODS else OTHER
        route = UNKNOWN if call.route is None else call.route.path
        key = (method, route, call.status)
        tally = self._tallies.get(key)
        if tally is None:
            durations = self._durations.labels(method, route) if call.method else None  # invalid HTTP has no duration
            tally = self._tallies[key] = Tally(self._requests.labels(*key), durations)
        tally.counts[bisect_left(MILLISECONDS, call.milliseconds)] += 1
        tally.milliseconds += call.milliseconds
        if call.refused_by is not None:
            self._refusals.labels(call.refused_by).inc()
        if call.tally:
            for name, number in call.tally.items():
                self._add(name, number)

    def _add(self, name: str, number: int) -> None:
        if name == ACCEPTED:
            self._plays_accepted.inc(number)
        elif name == FAILED_SIGN_IN:
            self._failed_sign_ins.inc(number)
        else:
            self._plays_refused.labels(name).inc(number)

    def gauge(self, name: str, text: str, read: Callable[[], float]) -> None:
        """Add a gauge, summed over all workers. `read` returns its value and must neither block nor raise."""
        self._gauges.append((Gauge(name, text, multiprocess_mode="livesum", registry=self._own), read))

    def counter(self, name: str, text: str, read: Callable[[], float]) -> None:
        """Add a counter, summed over all workers. `read` returns its total and must neither block nor raise."""
        counter = Counter(name, text, registry=self._own)
        self._counted[counter] = 0.0
        self._counters.append((counter, read))

    def counter_by(self, name: str, text: str, label: str, read: Mapping[str, Callable[[], float]]) -> None:
        """Add a counter with a label, summed over all workers. `read`: as in `counter`, for each value of the label."""
        family = Counter(name, text, (label,), registry=self._own)
        for value, read_value in read.items():
            counter = family.labels(value)
            self._counted[counter] = 0.0
            self._counters.append((counter, read_value))

    def on_scrape(self, name: str, text: str, read: Callable[[], float | None]) -> None:
        """Add a gauge that all workers share. At each scrape, `read` returns its value, or None to leave it out."""
        self._on_scrape.add(name, text, read)

    async def refresh(self) -> None:
        self._read()

    def text(self) -> bytes:
        """Return all metrics in Prometheus text format. Reads files, so do not call it on the event loop."""
        self._read()
        return generate_latest(self._shown)

    def _read(self) -> None:
        with self._refreshing:
            for tally in [*self._tallies.values()]:
                tally.report()
            for gauge, read in self._gauges:
                gauge.set(read())
            for counter, read in self._counters:
                self._count(counter, read)

    def _count(self, counter: Counter, read: Callable[[], float]) -> None:
        now = read()
        counter.inc(max(now - self._counted[counter], 0.0))
        self._counted[counter] = now


class ScrapeCollector(Collector):
    def __init__(self) -> None:
        self._metrics: dict[str, tuple[str, Callable[[], float | None]]] = {}

    def add(self, name: str, text: str, read: Callable[[], float | None]) -> None:
        self._metrics[name] = text, read

    def collect(self) -> Iterable[Metric]:
        build = GaugeMetricFamily(
            "musicsvc_build_info", "Version of the service and of Python.", labels=("version", "python")
        )
        build.add_metric((__version__, platform.python_version()), 1)
        yield build
        for name, (text, read) in self._metrics.items():
            try:
                value = read()
            except (OSError, Failure):
                continue
            if value is not None:
                yield GaugeMetricFamily(name, text, value=value)
