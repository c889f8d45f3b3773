"""Metrics of memory, processor time and open files of the server's processes, read from /proc (Linux)."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from prometheus_client import ProcessCollector
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector


class WorkerProcessCollector(Collector):
    """Collects metrics of each worker process, such as its memory. The names of the metrics begin with `process_`."""

    def __init__(self, pids: Callable[[], Mapping[str, str]] | None = None) -> None:
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
