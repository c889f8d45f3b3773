"""Parser of /metrics, as Prometheus reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.parser import text_string_to_metric_families

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.support.serving import Client

Figures = dict[tuple[str, frozenset[tuple[str, str]]], float]


def read(text: str) -> Figures:
    """Each figure by its name and labels."""
    found: Figures = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = sample.name, frozenset(sample.labels.items())
            assert key not in found, key
            found[key] = sample.value
    return found


async def scraped(client: Client) -> Figures:
    """The figures of a server."""
    answer = await client.get("/metrics")
    assert answer.status == 200, answer.body
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    return read(answer.body.decode())


def total(figures: Figures, name: str, **labels: str) -> float:
    """The sum of all figures of this name with these labels among theirs."""
    wanted = set(labels.items())
    return sum(value for (found, given), value in figures.items() if found == name and wanted <= given)


def series(figures: Figures, name: str) -> list[Mapping[str, str]]:
    """The labels of each figure of this name."""
    return [dict(given) for found, given in figures if found == name]
