"""/metrics of one process: values, labels, and access."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from musicsvc import __version__
from musicsvc.clock import SECOND, MovableClock
from musicsvc.config import Limits, Metrics, Settings
from musicsvc.errors import NotFound
from musicsvc.server.call import Call
from musicsvc.server.handlers.health import expose_metrics
from musicsvc.server.metrics import collectors
from musicsvc.server.metrics.registry import METHODS, OTHER, UNKNOWN
from musicsvc.server.metrics.registry import Metrics as Counting
from musicsvc.server.network import tls
from musicsvc.server.peer import Peer
from musicsvc.server.routes.table import ROUTES
from musicsvc.store.engine.store import Store
from tests.support.prometheus import read, scraped, series, total
from tests.support.raw_connection import connected, request
from tests.support.serving import Client, StartServer, person, running

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database

REQUESTS = "musicsvc_requests_total"
SECONDS = "musicsvc_request_seconds"
HTTPS = {"X-Forwarded-Proto": "https"}


async def test_requests_are_counted_by_method_route_and_status(client: Client) -> None:
    for path in ("albums", "albums", "albums/1", "albums/2?with=tracks", "albums?perPage=0"):
        await client.get(path)
    await client("HEAD", "albums")
    await client.post("artists", {"name": "Amy Beach"})
    figures = await scraped(client)
    albums = {"method": "GET", "route": "/api/v1/albums"}
    assert total(figures, REQUESTS, status="200", **albums) == 2
    assert total(figures, REQUESTS, status="422", **albums) == 1
    assert total(figures, REQUESTS, method="GET", route="/api/v1/albums/{id}", status="404") == 2
    assert total(figures, REQUESTS, method="HEAD", route="/api/v1/albums", status="200") == 1
    assert total(figures, REQUESTS, method="POST", route="/api/v1/artists", status="201") == 1
    assert total(figures, f"{SECONDS}_count", **albums) == 3
    assert total(figures, f"{SECONDS}_bucket", le="+Inf", **albums) == 3
    assert 0 < total(figures, f"{SECONDS}_sum", **albums) < 30
    assert total(figures, REQUESTS, route="/metrics") == 0  # not answered yet when the metrics were read
    assert total(await scraped(client), REQUESTS, route="/metrics", status="200") == 1


def test_what_is_no_http_is_counted_without_a_duration() -> None:
    metrics = Counting()
    metrics(Call(1, 1.0, "id", "", "192.0.2.1", status=400))
    figures = read(metrics.text().decode())
    assert (total(figures, REQUESTS, status="400"), total(figures, f"{SECONDS}_count")) == (1, 0)


async def test_made_up_paths_and_methods_share_one_label(anonymous: Client) -> None:
    for number in range(50):
        await anonymous.get(f"/made/up/{number}")
        await anonymous.get(f"albums/{number}")
        await anonymous(("BIND", "PROPFIND", "MKCOL", "TRACE", "LOCK")[number % 5], "albums")
    async with connected(anonymous.root) as wire:
        await wire.send(request("MADEUP", "/api/v1/albums"))
        assert (await wire.answer()).status == 400
    figures = await scraped(anonymous)
    assert total(figures, REQUESTS, method="GET", route=UNKNOWN, status="404") == 50
    assert total(figures, REQUESTS, method=OTHER, route=UNKNOWN, status="405") == 50
    assert total(figures, REQUESTS, method=OTHER, route=UNKNOWN, status="400") == 1
    assert total(figures, REQUESTS, route="/api/v1/albums/{id}") == 50
    assert len(series(figures, REQUESTS)) == 4
    assert {route.method for route in ROUTES} <= METHODS


async def test_a_request_that_came_through_a_proxy_sees_nothing(anonymous: Client) -> None:
    for name in ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP", "Via"):
        headers = {name: "127.0.0.1", **HTTPS}
        answer = await anonymous.get("/metrics", headers=headers)
        nothing = await anonymous.get("/no/such/path", headers=headers)
        assert (answer.status, answer.body) == (nothing.status, nothing.body) == (404, nothing.body), name
        assert set(answer.headers) == set(nothing.headers)


async def test_metrics_allow_lets_others_in(start_server: StartServer) -> None:
    settings = Settings(metrics=Metrics(allow=("192.0.2.0/24", "2001:db8::7")))
    client = await start_server(settings)
    for address, status in {
        "192.0.2.7": 200,
        "2001:db8::7": 200,
        "192.0.3.7": 404,
        "2001:db8::8": 404,
        "127.0.0.1": 404,
        "nonsense": 404,
    }.items():
        answer = await client.get("/metrics", headers={"X-Forwarded-For": address, **HTTPS})
        assert answer.status == status, address


async def test_what_is_under_way_is_shown(client: Client, store: Store) -> None:
    await client.post("artists", {"name": "Amy Beach"})
    figures = await scraped(client)
    assert total(figures, "musicsvc_requests_in_flight") == 1  # this request
    assert total(figures, "musicsvc_connections") == 1
    assert total(figures, "musicsvc_store_writes_waiting") == total(figures, "musicsvc_store_reads_waiting") == 0
    commits = total(figures, "musicsvc_store_commits_total")
    assert 0 < commits <= total(figures, "musicsvc_store_units_total")
    assert 0 < total(figures, "musicsvc_store_commit_seconds_total") < 30
    store.write(bool).result()
    assert total(await scraped(client), "musicsvc_store_commits_total") > commits
    async with connected(client.root) as wire:
        await wire.send(request("GET", "/api/v1/albums"))
        await wire.answer()
        assert total(await scraped(client), "musicsvc_connections") == 2


async def test_the_process_and_what_it_runs_are_told(client: Client) -> None:
    figures = await scraped(client)
    (build,) = series(figures, "musicsvc_build_info")
    assert build["version"] == __version__
    assert total(figures, "process_resident_memory_bytes", worker="0") > 1e6
    assert total(figures, "process_open_fds") > 1


@pytest.mark.only_on("sqlite")
async def test_the_sizes_of_the_database_are_told(client: Client) -> None:
    figures = await scraped(client)
    assert total(figures, "musicsvc_database_bytes") > 4096
    assert total(figures, "musicsvc_wal_bytes") > 0


async def test_each_server_of_a_process_counts_by_itself(client: Client, start_server: StartServer) -> None:
    other = await start_server()
    await client.get("genres")
    assert total(await scraped(other), REQUESTS) == 0
    assert total(await scraped(client), REQUESTS) == 1


async def test_head_is_get_without_its_body(client: Client) -> None:
    answer = await client("HEAD", "/metrics")
    assert (answer.status, answer.body) == (200, b"")
    assert answer.headers["Cache-Control"] == "no-store"


def test_a_reading_that_fails_or_has_nothing_is_left_out() -> None:
    def broken() -> Any:
        raise FileNotFoundError

    metrics = Counting()
    metrics.on_scrape("musicsvc_lost", "Lost.", broken)
    metrics.on_scrape("musicsvc_absent", "Absent.", lambda: None)
    metrics.on_scrape("musicsvc_there", "There.", lambda: 7)
    figures = read(metrics.text().decode())
    assert total(figures, "musicsvc_there") == 7
    assert not series(figures, "musicsvc_lost")
    assert not series(figures, "musicsvc_absent")


def test_what_another_part_counts_never_goes_back() -> None:
    counted = iter([3, 5, 4, 6])
    metrics = Counting()
    metrics.counter("musicsvc_other", "Other.", lambda: next(counted))
    shown = [total(read(metrics.text().decode()), "musicsvc_other_total") for _ in range(4)]
    assert shown == [3, 5, 5, 7]


async def test_refusals_are_counted_by_the_limit_that_was_spent(store: Store, clock: MovableClock) -> None:
    _, token = person(store, clock, "ann@label.test")
    limits = {"local": True, "token": "3/minute", "register": "1/hour"}
    settings = Settings(limits=Limits.model_validate(limits))
    async with running(store, clock, settings) as client:
        for _ in range(5):
            await client.holding(token).get("genres")
        for number in range(3):
            await client.post("auth/register", {"email": f"bob{number}@label.test", "password": "three romances"})
        figures = await scraped(client)
    assert total(figures, "musicsvc_requests_refused_total", limit="token") == 2
    assert total(figures, "musicsvc_requests_refused_total", limit="register") == 2
    assert total(figures, "musicsvc_requests_refused_total") == 4
    assert total(figures, REQUESTS, status="429") == 4


async def test_what_became_of_the_activity_log_is_shown(client: Client) -> None:
    for _ in range(5):
        await client.get("genres")
    figures = await scraped(client)
    assert total(figures, "musicsvc_activity_dropped_total") == total(figures, "musicsvc_tokens_revoked_total") == 0
    async with asyncio.timeout(30):
        while total(figures, "musicsvc_activity_written_total") < 5:
            await asyncio.sleep(0.1)
            figures = await scraped(client)
    assert total(figures, "musicsvc_activity_waiting") == 0


def test_a_client_whose_address_is_unknown_sees_nothing() -> None:
    peer = Peer("", secure=True, local=True, forwarded=False, encrypted=True, hsts=False, limits_apply=False)
    with pytest.raises(NotFound):
        expose_metrics(peer, Settings(), lambda: b"")


def test_there_are_no_backups_of_postgresql(clock: MovableClock) -> None:
    metrics = Counting()
    collectors.add_backups(metrics, Settings(database_url="postgresql://db/music"), clock)
    assert "musicsvc_backup" not in metrics.text().decode()


def test_the_end_of_the_certificate_and_free_disk_space_are_metrics(certified: tuple[str, str], tmp_path: Path) -> None:
    certificate, _ = certified
    url = f"sqlite:///{tmp_path / 'musicsvc.db'}"
    found = []
    validities = tls.validities(Path(certificate))
    for used in ((), validities):
        metrics = Counting()
        collectors.add_installation(metrics, Settings(database_url=url), used)
        found.append(read(metrics.text().decode()))
    name = "musicsvc_tls_certificate_not_after_timestamp_seconds"
    ends = min(validity.ends for validity in validities)
    assert (series(found[0], name), total(found[1], name)) == ([], ends / SECOND)
    free = shutil.disk_usage(tmp_path).free
    assert total(found[0], "musicsvc_data_disk_free_bytes") == pytest.approx(free, rel=0.2)
    metrics = Counting()
    missing = Settings(database_url="postgresql://127.0.0.1/none", data_dir=tmp_path / "missing")
    collectors.add_installation(metrics, missing)
    assert series(read(metrics.text().decode()), "musicsvc_data_disk_free_bytes") == []
