"""`GET /search`, and what it never shows."""

from urllib.parse import quote

from musicsvc.server.routes.table import ROUTES
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Track
from tests.support.serving import Client


async def test_a_search_finds_ten_of_each_kind_as_they_are_read_elsewhere(client: Client) -> None:
    artist = (await client.post("artists", {"name": "Louise Farrenc"})).json["artist"]["id"]
    albums, tracks = [], []
    for number in range(12):
        album = {"name": f"Farrenc: Études {'I' * number}", "artist_id": artist, "tags": ["piano"]}
        albums.append((await client.post("albums", album)).json["album"]["id"])
        track = {"name": f"Étude à la Farrenc {'I' * number}", "duration": 1000, "artists": [artist], "genre": "Étude"}
        made = await client.post("tracks", track | {"album_id": albums[-1], "isrc": f"FRZ0314002{number:02}"})
        tracks.append(made.json["track"]["id"])
    playlists = []
    for number, public in enumerate((False, True, True, False, True)):
        made = await client.post("playlists", {"name": f"Only Farrenc {number}", "public": public})
        playlists += [made.json["playlist"]["id"]] * public

    found = (await client.get("search?q=%20FARRENC%20")).json
    assert list(found) == ["status", "artists", "albums", "tracks", "playlists"]
    assert [row["id"] for row in found["artists"]] == [artist]
    assert [row["id"] for row in found["albums"]] == albums[:10]
    assert [row["id"] for row in found["tracks"]] == tracks[:10]
    assert [row["id"] for row in found["playlists"]] == playlists
    for noun in ("artists", "albums", "tracks", "playlists"):
        for row in found[noun]:
            assert (await client.get(f"{noun}/{row['id']}")).json[noun.removesuffix("s")] == row
    assert (await client.get("search?query=etude")).json["albums"][0]["id"] == albums[0]
    by_code = (await client.get("search?q=fr-z03-14-00211")).json
    assert [row["id"] for row in by_code["tracks"]] == [tracks[11]]
    assert by_code["artists"] == by_code["albums"] == by_code["playlists"] == []


async def test_private_playlists_are_in_no_search_of_anybody(client: Client) -> None:
    made = {}
    for name, public in (("Rainy day", True), ("Rainy night", False), ("Rainy noon", True)):
        made[name] = (await client.post("playlists", {"name": name, "public": public})).json["playlist"]["id"]

    async def found() -> list[str]:
        return [row["name"] for row in (await client.get("search?q=rainy")).json["playlists"]]

    assert await found() == ["Rainy day", "Rainy noon"]
    await client.put("playlists", {"id": made["Rainy day"], "name": "Rainy day", "public": False})
    assert await found() == ["Rainy noon"]
    await client.put("playlists", {"id": made["Rainy night"], "name": "Rainy nights", "public": True})
    assert await found() == ["Rainy noon", "Rainy nights"]
    assert (await client.delete(f"playlists/{made['Rainy noon']}")).status == 200
    assert await found() == ["Rainy nights"]


async def test_wrong_queries_are_refused_and_wildcards_are_letters(client: Client) -> None:
    for query in ("", "?q=", "?q=%20", f"?q={101 * 'x'}", "?q=a&query=b", "?q=a&q=b", "?q=%00"):
        answer = await client.get(f"search{query}")
        assert (answer.status, set(answer.json["errors"]) <= {"q", "query"}) == (422, True), query
    await client.post("artists", {"name": "Ada"})
    for text in ("%25", "_da", "*", "a*", "%22", "ada%22%20OR%20%22x", "%CC%81"):
        found = (await client.get(f"search?q={text}")).json
        assert found == {"status": "success", "artists": [], "albums": [], "tracks": [], "playlists": []}, text
    assert (await client.holding(None).get("search?q=ada")).status == 401
    unknown = await client.get("tracks?artist_id=9999")
    assert (unknown.status, unknown.json["errors"]) == (422, {"artist_id": "9999 does not exist."})
    for query, name in (
        ("isrc=GB1", "isrc"), ("genre=-", "genre"), ("isrc=%20", "isrc"), ("genre=%20", "genre"), ("page=", "page"),
        ("perPage=", "perPage"),
        ("q=a&query=b", "query"), ("query=a&q=a", "q"), ("q=&query=", "query"), (f"query={101 * 'x'}", "query"),
        ("artist_id=x", "artist_id"), (f"external_id={256 * 'x'}", "external_id"),
    ):  # fmt: skip
        assert set((await client.get(f"tracks?{query}")).json["errors"]) == {name}


async def test_an_empty_filter_is_none_and_a_search_text_has_two_names(client: Client) -> None:
    artist = (await client.post("artists", {"name": "Ada"})).json["artist"]["id"]
    for name in ("Maple", "Elm"):
        await client.post("tracks", {"name": name, "duration": 1, "artists": [artist]})
    await client.post("artists", {"name": "Bea"})

    async def found(query: str) -> list[str]:
        answer = await client.get(query)
        assert answer.status == 200, query
        listed = answer.json["artists" if query.startswith("artists") else "pagination"]
        return [row["name"] for row in listed["data"]]

    for name in ("q", "query"):
        assert await found(f"tracks?{name}=maple") == ["Maple"]
        assert await found(f"artists?{name}=ada") == ["Ada"]
        assert [row["name"] for row in (await client.get(f"search?{name}=elm")).json["tracks"]] == ["Elm"]
    for empty in (
        "q=",
        "query=",
        "q=%20",
        "artist_id=",
        "genre=",
        "external_id=",
        "isrc=",
        "q=&isrc=&genre=&artist_id=",
    ):
        assert await found(f"tracks?{empty}") == ["Elm", "Maple"], empty
    assert await found("tracks?q=elm&isrc=") == ["Elm"]
    assert await found("artists?query=%20") == ["Bea", "Ada"]


async def test_tracks_are_found_by_an_id_of_another_service_in_any_notation(client: Client, store: Store) -> None:
    artist = (await client.post("artists", {"name": "Ada"})).json["artist"]["id"]
    made = (await client.post("tracks", {"name": "Maple", "duration": 1, "artists": [artist]})).json["track"]["id"]
    store.write(Track.update(external_id="6habFhsOp2NvshLv26DqMb").where(Track.id == made).execute).result()

    for text in (
        "6habFhsOp2NvshLv26DqMb",
        "spotify:track:6habFhsOp2NvshLv26DqMb",
        "https://open.spotify.com/intl-de/track/6habFhsOp2NvshLv26DqMb?si=1&utm_source=x",
    ):
        answer = await client.get(f"tracks?external_id={quote(text)}")
        assert [row["id"] for row in answer.json["pagination"]["data"]] == [made], text
    assert (await client.get("tracks?external_id=spotify:track:6")).json["pagination"]["data"] == []


def test_every_search_text_has_both_names() -> None:
    queries = {route.query for route in ROUTES if route.query is not None}
    searching = [query for query in queries if {"q", "query"} & {*query.model_fields}]
    assert len(searching) > 8
    for query in searching:
        assert {"q", "query"} <= {*query.model_fields, *query.other_names}, query
