"""The metrics at /metrics, as Prometheus reads them."""

from collections.abc import Mapping

from prometheus_client.parser import text_string_to_metric_families

from tests.support.serving import Client

Figures = dict[tuple[str, frozenset[tuple[str, str]]], float]


def read(text: str) -> Figures:
    """Return each value by its name and labels."""
    found: Figures = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = sample.name, frozenset(sample.labels.items())
            assert key not in found, key
            found[key] = sample.value
    return found


async def scraped(client: Client) -> Figures:
    """Return the metrics of a server."""
    answer = await client.get("/metrics")
    assert answer.status == 200, answer.body
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    return read(answer.body.decode())


def total(figures: Figures, name: str, **labels: str) -> float:
    """Return the sum of the values with this name that have these labels among theirs."""
    wanted = set(labels.items())
    return sum(value for (found, given), value in figures.items() if found == name and wanted <= given)


def series(figures: Figures, name: str) -> list[Mapping[str, str]]:
    """Return the labels of each value with this name."""
    return [dict(given) for found, given in figures if found == name]
