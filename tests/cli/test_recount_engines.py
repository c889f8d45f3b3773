"""Spark and ClickHouse recount the same figures as the service, to the last listener."""

import json
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from musicsvc.store.engine.store import Store
from tests.support import dumps, spark_cluster

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database

WINDOWS = (("artist", "7-days"), ("album", "2024-02"), ("track", "all"))
Compare = Callable[..., Any]


@pytest.fixture
def compare(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Compare:
    """Return a function that compares the figures of an engine with those of the service, in a new process."""
    folder = dumps.create(store, tmp_path / "dum`ped").folder
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", store.url)
    monkeypatch.setenv("SPARK_LOCAL_IP", spark_cluster.HOST)

    def compare(kind: str, period: str, *engine: str) -> Any:
        options = "--kind", kind, "--period", period, "--compare", "--json", "--engine", *engine
        done = subprocess.run(
            [sys.executable, "-m", "musicsvc", "plays", "recount", "--from", str(folder), *options],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    return compare


@pytest.mark.long
def test_no_figure_of_clickhouse_differs(compare: Compare) -> None:
    if find_spec("clickhouse_connect") is None:
        pytest.skip("clickhouse-connect is not installed (pip install -e '.[clickhouse]')")
    for kind, period in WINDOWS:
        check(compare(kind, period, "clickhouse"))


@pytest.mark.long
def test_no_figure_of_spark_with_two_workers_differs(compare: Compare, tmp_path: Path) -> None:
    with spark_cluster.started(tmp_path) as master:
        for kind, period in WINDOWS:
            check(compare(kind, period, "spark", "--master", master))


@pytest.mark.long
def test_no_figure_of_spark_on_this_machine_differs(compare: Compare) -> None:
    spark_cluster.home()
    check(compare("artist", "2026-02", "spark"))


def check(found: Any) -> None:
    assert found["differences"] == found["not_compared"] == []
    assert found["subjects"] > 4
