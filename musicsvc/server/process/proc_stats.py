"""Memory, processor time and open files of the server's processes, as the system tells them (Linux)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from prometheus_client import ProcessCollector
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


class Processes(Collector):
    """The usual `process_` figures of each worker."""

    def __init__(self, pids: Callable[[], Mapping[str, str]] | None = None) -> None:
        """`pids` gives the process of each worker by its number; without it there is this one alone."""
        self._pids = pids or (lambda: {"0": "self"})

    def collect(self) -> Iterable[Metric]:
        """The figures of this moment, with the worker's number on each."""
        families: dict[str, Metric] = {}
        for worker, pid in self._pids().items():
            for found in ProcessCollector(pid=partial(str, pid), registry=None).collect():
                family = families.setdefault(found.name, Metric(found.name, found.documentation, found.type))
                for sample in found.samples:
                    family.add_sample(sample.name, {"worker": worker}, sample.value)
        return families.values()
