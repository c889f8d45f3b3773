"""POST /plays: invalid fields refuse the whole batch, other reasons a single play."""

from typing import Any

import pytest

from musicsvc.clock import DAY, SECOND, MovableClock, isoformat
from musicsvc.config import Plays, Settings
from musicsvc.store.accounts import api_access, users
from musicsvc.store.catalog import tracks
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Play, Track
from musicsvc.store.plays import ingest
from musicsvc.store.plays.reported import own_plays
from tests.conftest import NOW
from tests.support.serving import Client, person, running

TRACK = 1


@pytest.fixture(autouse=True)
def _track(store: Store) -> None:
    store.write(lambda: Track.create(name="Rag", duration=1, created_at=1)).result()


def play(**more: Any) -> dict[str, Any]:
    return {"track_id": TRACK, "played_at": isoformat(NOW)} | more


def kept(store: Store) -> list[Any]:
    return store.read(lambda: list(Play.select().order_by(Play.played_at))).result()


async def test_plays_are_accepted_once_and_shown_in_the_catalog(client: Client, store: Store) -> None:
    batch = {"plays": [play(), play(played_at=isoformat(NOW - DAY), duration_ms=1000), play()]}
    first = await client.post("plays", batch)
    assert (first.status, first.json) == (201, {"status": "success", "accepted": 2, "repeated": 1, "refused": []})
    again = await client.post("plays", batch)
    assert (again.status, again.json["accepted"], again.json["repeated"]) == (201, 0, 3)
    assert (await client.get(f"tracks/{TRACK}")).json["track"]["plays"] == 2
    assert [(row.played_at, row.duration_ms) for row in kept(store)] == [(NOW - DAY, 1000), (NOW, None)]


@pytest.mark.parametrize(
    ("sent", "instant"),
    [
        ("2026-03-01T10:00:00Z", "2026-03-01T10:00:00.000000Z"),
        (" 2026-03-01t10:00:00z ", "2026-03-01T10:00:00.000000Z"),
        ("2026-03-01T10:00Z", "2026-03-01T10:00:00.000000Z"),
        ("2026-03-01T10:00:00.25+02:00", "2026-03-01T08:00:00.250000Z"),
        ("2026-03-01T10:00:00.123456789-0530", "2026-03-01T15:30:00.123456Z"),
        ("2026-03-01T15:00:00,5+05", "2026-03-01T10:00:00.500000Z"),
        (1_772_359_200, "2026-03-01T10:00:00.000000Z"),
        (1_772_359_200.5, "2026-03-01T10:00:00.500000Z"),
    ],
)
async def test_a_time_is_iso_8601_with_its_offset_or_unix_seconds(
    client: Client, store: Store, sent: object, instant: str
) -> None:
    answer = await client.post("plays", {"plays": [play(played_at=sent)]})
    if instant > isoformat(NOW):
        assert answer.json["refused"] == [{"index": 0, "reason": ingest.FUTURE}]
    else:
        assert (answer.status, answer.json["accepted"]) == (201, 1)
        assert [isoformat(row.played_at) for row in kept(store)] == [instant]


FAULTS = {
    "Must be a time such as 2026-01-31T12:00:00Z": ("played_at", "2026-03-01T10:00:00"),
    "There is no such day, time or offset. Seconds end at 59.": ("played_at", "2026-03-01T09:59:60Z"),
    "Is out of range; Unix times must be in seconds.": ("played_at", 1_772_359_200_000),
    "Must not contain NUL characters.": ("listener", "a\0b"),
}


async def test_a_faulty_field_refuses_the_whole_batch_and_says_why(client: Client, store: Store) -> None:
    for message, (field, value) in FAULTS.items():
        answer = await client.post("plays", {"plays": [play(), play(**{field: value})]})
        assert (answer.status, list(answer.json["errors"])) == (422, [f"plays.1.{field}"])
        assert answer.json["errors"][f"plays.1.{field}"].startswith(message)
    assert kept(store) == []


async def test_each_refused_play_is_named_with_its_reason_and_the_rest_is_taken(client: Client) -> None:
    batch = [
        play(track_id=99),
        play(listener="somebody"),
        play(played_at=NOW // SECOND + 301),
        play(played_at=NOW // SECOND - 401 * 86400),
        play(played_at="0001-01-01T00:00:00+14:00"),
        play(played_at="9999-12-31T23:59:59-14:00"),
        play(),
    ]
    answer = await client.post("plays", {"plays": batch})
    assert (answer.status, answer.json["accepted"]) == (201, 1)
    too_old = own_plays.TOO_OLD
    reasons = [tracks.UNKNOWN, ingest.FOR_OTHERS, ingest.FUTURE, too_old, too_old, ingest.FUTURE]
    assert answer.json["refused"] == [{"index": at, "reason": reason} for at, reason in enumerate(reasons)]


async def test_own_plays_are_refused_where_the_service_does_not_accept_them(store: Store, clock: MovableClock) -> None:
    _, token = person(store, clock, "bob@label.test")
    async with running(store, clock, Settings(plays=Plays(own=False))) as client:
        answer = await client.holding(token).post("plays", {"plays": [play()]})
    assert (answer.status, answer.json["accepted"]) == (201, 0)
    assert answer.json["refused"] == [{"index": 0, "reason": own_plays.TURNED_OFF}]


async def test_with_the_permission_an_account_reports_for_others_from_the_next_request_on(
    client: Client, store: Store, clock: MovableClock
) -> None:
    batch = {"plays": [play(listener=name) for name in ("a", "b", " a ")]}
    assert (await client.post("plays", batch)).json["accepted"] == 0
    store.write(lambda: api_access.grant(users.by_email("ann@label.test"), plays=True, now=1)).result()
    granted = (await client.post("plays", batch)).json
    assert (granted["accepted"], granted["repeated"]) == (2, 1)
    other = client.holding(person(store, clock, "bob@label.test")[1])
    assert (await other.post("plays", batch)).json["accepted"] == 0


async def test_a_clients_id_is_one_accounts_own(client: Client, store: Store, clock: MovableClock) -> None:
    batch = {"plays": [play(client_id="x"), play(client_id="y", played_at=isoformat(NOW - DAY))]}
    other = client.holding(person(store, clock, "bob@label.test")[1])
    assert (await client.post("plays", batch)).json["accepted"] == 2
    assert (await other.post("plays", batch)).json["accepted"] == 2
    assert (await client.post("plays", {"plays": [play(client_id="x", track_id=TRACK)]})).json["repeated"] == 1
