"""Listening, hours, milestones and releases are the same from endpoint, command line, recount and oracle."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable, Coroutine
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from musicsvc.cli import main
from musicsvc.cli.session import Session
from musicsvc.clock import DAY, MovableClock
from musicsvc.server.routes.route import INSIGHTS
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Album
from musicsvc.store.plays.periods import to_date
from musicsvc.store.plays.subjects import KINDS
from tests.conftest import NOW
from tests.support import databases
from tests.support import listening_oracle as oracle
from tests.support.listening_world import TimedWorld, catalog
from tests.support.oracle import PlayOf
from tests.support.serving import Client, running

Ask = Callable[..., Coroutine[Any, Any, Any]]

NOUNS = {kind: noun for noun, kind in KINDS.items()}
DURATIONS = (None, None, 0, 10_000, 15_000, 29_999, 45_000, 100_000, 150_000, 200_000, 10**6)
RELEASED = 40  # days ago


@databases.prefilling
def prefilled(store: Store) -> TimedWorld:
    """Some hundred plays of the last 120 days, half of them reported after the others were rolled up."""
    world, chance = TimedWorld.create(store, NOW), random.Random(5)
    for _ in range(2):
        days = [int(chance.triangular(0, 120, 60)) for _ in range(300)]
        world.play(
            PlayOf(
                world.made.tracks[chance.choice((0, 0, 0, 1, 2, 3))],
                NOW - day * DAY - chance.randrange(DAY // 2),
                f"l{int(chance.triangular(0, 60, 60 - day / 2))}",
                chance.choice(DURATIONS),
            )
            for day in days
        )
        world.roll_up()
    released = to_date(NOW // DAY - RELEASED).isoformat()
    store.write(Album.update(release_date=released).where(Album.id == world.made.albums[0]).execute).result()
    future = to_date(NOW // DAY + 3).isoformat()
    store.write(Album.update(release_date=future).where(Album.id == world.made.albums[1]).execute).result()
    return world


@pytest.fixture
def world(prefilled: databases.Filled[TimedWorld], store: Store) -> TimedWorld:
    return prefilled.made.on_copy(store)


@pytest.fixture
async def client(store: Store, clock: MovableClock, world: TimedWorld) -> AsyncIterator[Client]:
    async with running(store, clock) as client:
        yield client.holding(world.made.token)


@pytest.fixture
def command(
    store: Store,
    clock: MovableClock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> Ask:
    """Returns the JSON of `musicsvc insights`."""
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", store.url)
    monkeypatch.setenv("MUSICSVC_DATA_DIR", str(tmp_path))

    async def ask(*line: object) -> Any:
        words = ["insights", *map(str, line), "--json"]
        run = partial(main.command().main, words, prog_name="musicsvc", obj=Session(clock=clock), standalone_mode=False)
        await asyncio.to_thread(run)
        return json.loads(capsysbinary.readouterr().out)

    return ask


async def data(client: Client, path: str) -> Any:
    answer = await client.get(f"{INSIGHTS}/{path}")
    assert answer.status == 200, answer.body
    return answer.json["data"]


@pytest.mark.slow
async def test_listening_hours_and_milestones_are_the_same_from_every_source(
    client: Client, command: Ask, world: TimedWorld, clock: MovableClock
) -> None:
    today = to_date(clock.now() // DAY)
    month = (today - timedelta(days=29), today)
    custom = (today - timedelta(days=70), today - timedelta(days=35))
    for (kind, each), plays in world.subjects().items():
        for first, last in (month, custom):
            query = f"from={first}&to={last}" if last == custom[1] else "period=30-days"
            period = {"name": "custom" if "from" in query else "30-days", "start": str(first), "end": str(last)}
            expected = {
                "listening": {"period": period} | oracle.listening(plays, world.lengths, first, last),
                "hours": {"period": period, "timezone": "UTC", "hours": oracle.hours(plays, first, last)},
                "milestones": oracle.milestones(plays),
            }
            for name, figures in expected.items():
                assert await data(client, f"{NOUNS[kind]}s/{each}/{name}?{query}") == figures
            if each not in {world.made.tracks[0], world.made.albums[0], world.made.artists[1]}:
                continue  # commands are slow
            options = [f"--{part}" for part in query.split("&")]
            shown = await command("show", NOUNS[kind], each, *options)
            assert {name: shown[name] for name in expected} == expected
            explained = await command("explain", NOUNS[kind], each, *options)
            assert (explained["differences"], explained["equal"]) == ([], True)
            for source in ("served", "counted"):
                recounted = explained["listening"][source]
                assert {name: recounted[name] for name in expected} == expected
            assert json.dumps(explained["listening"]["counted"]) == json.dumps(explained["listening"]["served"])
            within = [play for play in plays if first <= oracle.time(play).date() <= last]
            assert explained["listening"]["plays_without_duration"] == sum(p.duration_ms is None for p in within)


@pytest.mark.on_both
async def test_releases_are_the_same_from_every_source(
    client: Client, command: Ask, world: TimedWorld, clock: MovableClock
) -> None:
    one, other = world.made.albums
    today = to_date(clock.now() // DAY)
    plays = next(plays for subject, plays in world.subjects().items() if subject == (KINDS["album"], one))
    for days in (1, 28, 90):
        points = oracle.release(plays, today - timedelta(days=RELEASED), days, today)
        assert len(points) == min(days, RELEASED + 1)
        first = {"id": one, "name": "Album 0", "release_date": str(today - timedelta(days=RELEASED)), "points": points}
        future = {"id": other, "name": "Album 1", "release_date": str(today + timedelta(days=3)), "points": []}
        expected = {"days": days, "releases": [first, future]}
        assert await data(client, f"albums/{one}/release?against={other},{one},{other}&days={days}") == expected
        assert await command("release", one, "--against", other, "--days", days) == expected
    explained = await command("explain", "album", one)
    default = await data(client, f"albums/{one}/release")
    assert explained["listening"]["counted"]["release"] == explained["listening"]["served"]["release"] == default


async def test_what_cannot_be_compared_is_named(client: Client, world: TimedWorld) -> None:
    many = ",".join(map(str, range(1, 11)))
    faulty = {"against": ("x", "1,", "01", many, "987654321"), "days": ("0", "366", "1&days=2")}
    for field, values in faulty.items():
        for value in values:
            answer = await client.get(f"{INSIGHTS}/albums/{world.made.albums[0]}/release?{field}={value}")
            assert (answer.status, [*answer.json["errors"]]) == (422, [field]), value


async def test_another_accounts_album_cannot_be_compared_with(
    client: Client, world: TimedWorld, store: Store, clock: MovableClock
) -> None:
    theirs = store.write(partial(catalog, clock.now())).result().albums[0]
    answer = await client.get(f"{INSIGHTS}/albums/{world.made.albums[0]}/release?against={theirs}")
    assert (answer.status, answer.json["error"]) == (403, "forbidden")


async def test_an_album_without_a_release_date_has_no_points(client: Client, world: TimedWorld, store: Store) -> None:
    album = world.made.albums[0]
    store.write(Album.update(release_date=None).where(Album.id == album).execute).result()
    found = await data(client, f"albums/{album}/release")
    assert found == {
        "days": 28,
        "releases": [{"id": album, "name": "Album 0", "release_date": None, "points": []}],
    }
