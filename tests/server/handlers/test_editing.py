"""Artists, albums and tracks are edited and deleted through the API, as docs/api.md says."""

from typing import Any

import pytest

from musicsvc.clock import SECOND, MovableClock
from musicsvc.server.routes.route import INSIGHTS
from musicsvc.server.schemas.catalog import AlbumEdit, ArtistEdit, TrackEdit
from musicsvc.store.catalog.fields import FIELDS
from musicsvc.store.engine.store import Store
from musicsvc.store.models import User
from tests.conftest import NOW
from tests.support.serving import Client, person

SCHEMAS = {
    "artist": [*ArtistEdit.model_fields],
    "album": [*AlbumEdit.model_fields],
    "track": [*TrackEdit.model_fields],
}
# By noun: a change of every field. The examples of the table of fields, and these for the rest.
GIVEN: dict[str, dict[str, Any]] = {
    "artist": {"image_small": "https://img.test/f.png"},
    "album": {
        "artist_id": 0,
        "release_date": "1841-12-24",
        "image": "https://img.test/j.png",
        "tags": ["piano"],
    },
    "track": {
        "duration": 180_000,
        "artists": [0],
        "genre": "Art Song",
        "image": "https://img.test/s.png",
        "release_date": "1841-09-01",
        "album_id": 0,
        "currency": "EUR",
        "licensing_type": "both",
        "exclusive_status": "sold",
        "exclusive_price": 90.0,
        "tags": ["river"],
    },
}
FULL = {noun: {each.name: each.example for each in fields} | GIVEN[noun] for noun, fields in FIELDS.items()}
UNSHOWN = {  # or shown as objects
    noun: {each.name for each in fields if each.shown == "never" or not each.is_column}
    for noun, fields in FIELDS.items()
}


@pytest.fixture
def other_client(client: Client, store: Store, clock: MovableClock) -> Client:
    return client.holding(person(store, clock, "ben@label.test")[1])


@pytest.fixture
def reporting(client: Client, store: Store) -> Client:
    """The client, whose account may report plays of others."""
    store.write(lambda: User.update(reports_plays=True).execute()).result()
    return client


async def made(client: Client, noun: str, **values: Any) -> dict[str, Any]:
    answer = await client.post(f"{noun}s", values)
    assert answer.status == 201, answer.json
    return dict(answer.json[noun])


async def edited(client: Client, noun: str, number: int, **values: Any) -> dict[str, Any]:
    answer = await client("PATCH", f"{noun}s/{number}", values)
    assert answer.status == 200, answer.json
    assert answer.json[noun] == (await client.get(f"{noun}s/{number}")).json[noun]
    return dict(answer.json[noun])


async def fresh(client: Client, noun: str) -> tuple[int, dict[str, Any]]:
    """Make an artist, album or track with no more than a name. Return its id and values for all of its fields."""
    artist = (await made(client, "artist", name="Clara"))["id"]
    album = (await made(client, "album", name="Songs", artist_id=artist))["id"]
    track = await made(client, "track", name="Air", duration=1, artists=[artist])
    other = (await made(client, "artist", name="Louise"))["id"]
    given = {"artist_id": other, "artists": [other, artist], "album_id": album}
    values = {name: given.get(name, value) for name, value in FULL[noun].items()}
    return {"artist": artist, "album": album, "track": track["id"]}[noun], values


@pytest.mark.parametrize("noun", FIELDS)
async def test_every_field_can_be_changed_and_what_is_not_sent_stays(client: Client, noun: str) -> None:
    number, values = await fresh(client, noun)
    assert [*values] == SCHEMAS[noun]
    for name, value in values.items():
        await edited(client, noun, number, **{name: value})
    shown = await edited(client, noun, number)  # nothing is sent
    assert {name: shown[name] for name in values if name not in UNSHOWN[noun]} == {
        name: value for name, value in values.items() if name not in UNSHOWN[noun]
    }
    if noun == "album":
        assert [artist["id"] for artist in shown["artists"]] == [values["artist_id"]]
        assert (await client.get(f"albums/{number}?with=tags")).json["album"]["tags"][0]["name"] == "piano"
    if noun == "track":
        assert [artist["id"] for artist in shown["artists"]] == values["artists"]
        assert ([row["display_name"] for row in shown["genres"]], shown["tags"][0]["name"]) == (["Art Song"], "river")


@pytest.mark.parametrize("noun", FIELDS)
async def test_null_empties_what_may_be_empty_and_leaves_the_rest(client: Client, noun: str) -> None:
    number, values = await fresh(client, noun)
    full = await edited(client, noun, number, **values)
    emptied = await edited(client, noun, number, **dict.fromkeys(values))
    for field in FIELDS[noun]:
        if field.name not in UNSHOWN[noun]:
            assert emptied[field.name] == (None if field.optional else full[field.name]), field
    if noun == "track":
        assert (emptied["artists"], emptied["genres"], emptied["tags"]) == (full["artists"], [], [])


async def test_a_change_is_held_to_the_rules_of_what_is_new(client: Client, other_client: Client) -> None:
    number, values = await fresh(client, "track")
    await made(client, "track", name="Air", duration=1, artists=values["artists"], isrc="DEA624101234")
    theirs = (await made(other_client, "artist", name="Theirs"))["id"]
    their_album = (await made(other_client, "album", name="Theirs", artist_id=theirs))["id"]
    for body, status, fields in (
        ({"name": " "}, 422, {"name"}),
        ({"isrc": "DEA624101234", "bpm": 7}, 422, {"bpm"}),
        ({"isrc": "DEA624101234"}, 422, {"isrc"}),
        ({"artists": [values["artists"][0], 999]}, 422, {"artists.1"}),
        ({"artists": []}, 422, {"artists"}),
        ({"artists": [theirs]}, 403, set()),
        ({"album_id": their_album}, 403, set()),
        ([], 422, {"body"}),
    ):
        answer = await client("PATCH", f"tracks/{number}", body)
        assert (answer.status, answer.json["errors"].keys()) == (status, fields), (body, answer.json)
    await edited(client, "track", number, isrc="DEA624101235")
    await edited(client, "track", number, isrc="dea624101235", artists=[theirs, *values["artists"]])  # its own ISRC


async def test_an_album_keeps_its_bounds_whatever_of_it_is_edited(client: Client) -> None:
    artist = (await made(client, "artist", name="Clara"))["id"]
    album = (await made(client, "album", name="Long", artist_id=artist))["id"]
    text, image = "\U0001f3b5" * 10_000, "https://img.test/" + "c" * 2000  # four bytes each in JSON
    for _ in range(19):
        await made(client, "track", name="Long", duration=1, artists=[artist], album_id=album, description=text)
    bare = (await made(client, "track", name="Short", duration=1, artists=[artist]))["id"]
    refused = "takes at most 768 KiB as JSON."
    await edited(client, "track", bare, album_id=album)
    for noun, number, body, field in (
        ("track", bare, {"description": text}, "description"),
        ("album", album, {"description": text}, "description"),
    ):
        answer = await client("PATCH", f"{noun}s/{number}", body)
        assert (answer.status, answer.json["errors"][field][-30:]) == (422, refused), answer.json
    answer = await client("PATCH", f"artists/{artist}", {"image_small": image})
    assert (answer.status, answer.json["errors"]["image_small"][-30:]) == (422, refused)
    await edited(client, "artist", artist, name="C")  # shorter than before


@pytest.mark.on_both
async def test_what_was_deleted_is_unknown_and_its_plays_stay_with_the_rest(reporting: Client) -> None:
    artist = (await made(reporting, "artist", name="Clara"))["id"]
    album = (await made(reporting, "album", name="Songs", artist_id=artist))["id"]
    tracks = [
        (await made(reporting, "track", name="Air", duration=1, artists=[artist], album_id=album))["id"]
        for _ in range(2)
    ]
    played = [{"track_id": track, "played_at": NOW // SECOND - 60, "listener": "ann"} for track in tracks]
    assert (await reporting.post("plays", {"plays": played})).json["accepted"] == 2
    paths = {"artist": f"{INSIGHTS}/artists/{artist}", "album": f"{INSIGHTS}/albums/{album}"}
    before = {noun: (await reporting.get(path)).json["data"] for noun, path in paths.items()}

    assert (await reporting.delete(f"tracks/{tracks[0]}")).json == {"status": "success"}
    for path in (f"tracks/{tracks[0]}", f"{INSIGHTS}/tracks/{tracks[0]}", f"tracks/{tracks[0]}/comments"):
        assert (await reporting.get(path)).status == 404
    assert (await reporting.delete(f"tracks/{tracks[0]}")).status == 404
    again = (await reporting.post("plays", {"plays": played})).json
    assert (again["repeated"], again["refused"]) == (1, [{"index": 0, "reason": "There is no such track."}])
    for noun, path in paths.items():
        now = (await reporting.get(path)).json["data"]
        assert {key: now[key] for key in ("plays", "listeners", "growth")} == {
            key: before[noun][key] for key in ("plays", "listeners", "growth")
        }
    assert [row["id"] for row in (await reporting.get(paths["album"])).json["data"]["tracks"]] == [tracks[1]]
    assert (await reporting.get(f"albums/{album}")).json["album"]["plays"] == 2

    refused = await reporting.delete(f"artists/{artist}")
    needed = "Clara is the only artist of 1 track and the first artist of 1 album."
    assert (refused.status, refused.json["message"].startswith(needed)) == (409, True)
    assert (await reporting.delete(f"albums/{album}")).status == 200
    assert (await reporting.get(f"tracks/{tracks[1]}")).json["track"]["album_id"] is None
    assert (await reporting.delete(f"tracks/{tracks[1]}")).status == 200
    assert (await reporting.get(paths["artist"])).json["data"]["plays"] == {"total": 2, "period": 2}
    assert (await reporting.delete(f"artists/{artist}")).status == 200
    assert (await reporting.get(paths["artist"])).status == 404


@pytest.mark.on_both
async def test_cached_lists_follow_an_edit_and_a_deletion(client: Client) -> None:
    number, values = await fresh(client, "track")
    playlist = (await client.post("playlists", {"name": "Rags"})).json["playlist"]["id"]
    await client.post(f"playlists/{playlist}/tracks/add", {"ids": [number]})
    lists = ("tracks", f"albums/{values['album_id']}", f"playlists/{playlist}/tracks", "search?q=september")

    async def found() -> list[bool]:
        return [b"September" in (await client.get(path)).body for path in lists]

    assert await found() == [False] * 4
    await edited(client, "track", number, name="September", album_id=values["album_id"])
    assert await found() == [True] * 4
    assert (await client.delete(f"tracks/{number}")).status == 200
    assert await found() == [False] * 4
