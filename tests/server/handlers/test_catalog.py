"""Artists, albums and tracks, with and without a token."""

from tests.support.serving import Client


async def test_an_artist_album_and_track_can_be_made_and_read(client: Client) -> None:
    artist = (await client.post("artists", {"name": " Clara Schumann ", "image_small": "https://img.test/c.png"})).json
    assert artist["artist"]["name"] == "Clara Schumann"
    artist_id = artist["artist"]["id"]
    made = await client.post("albums", {"name": "Songs", "artist_id": artist_id, "tags": ["lied"]})
    assert made.status == 201
    album_id = made.json["album"]["id"]
    track = await client.post(
        "tracks",
        {
            "name": "Liebst du um Schönheit",
            "duration": 125_000,
            "artists": [artist_id],
            "album_id": album_id,
            "genre": "Art Song",
            "price": 2,
        },
    )
    assert track.status == 201, track.json
    assert track.json["track"]["duration_text"] == "2:05"
    album = (await client.get(f"albums/{album_id}?with=genres,tags")).json["album"]
    assert [row["name"] for row in album["tracks"]] == ["Liebst du um Schönheit"]
    assert album["genres"][0]["name"] == "art-song"
    assert album["tags"][0]["name"] == "lied"
    for path in (
        "albums",
        "artists",
        f"artists/{artist_id}/albums",
        f"artists/{artist_id}/tracks",
        "genres",
        f"artists/{artist_id}",
    ):
        assert (await client.get(path)).status == 200
        public = await client.holding(None).get(path)
        assert public.status == 200, public.body


async def test_a_negative_zero_is_answered_as_zero(client: Client) -> None:
    artist = (await client.post("artists", {"name": "Emilie Mayer"})).json["artist"]["id"]
    prices = {"price": -0.0, "exclusive_price": -0.0}
    made = await client.post("tracks", {"name": "Notturno", "duration": 1000, "artists": [artist]} | prices)
    read = await client.get(f"tracks/{made.json['track']['id']}")
    for answer in (made, read):
        assert b'"price":0.0,' in answer.body
        assert b'"exclusive_price":0.0,' in answer.body


async def test_identifiers_are_answered_as_they_are_written_and_an_isrc_is_of_one_track_of_the_caller(
    client: Client,
) -> None:
    artist = (await client.post("artists", {"name": "Louise Farrenc"})).json["artist"]["id"]
    album = {"name": "Symphonies", "artist_id": artist, "upc": " 036000291452", "label": "Heugel "}
    made = (await client.post("albums", album)).json["album"]
    assert (made["upc"], made["label"]) == ("036000291452", "Heugel")
    track = {"name": "No. 3", "duration": 1000, "artists": [artist]}
    more = {"isrc": "fr-z03-14-00212", "track_number": 3, "disc_number": 2, "explicit": False}
    shown = (await client.post("tracks", track | more)).json["track"]
    assert {name: shown[name] for name in more} == more | {"isrc": "FRZ031400212"}
    again = await client.post("tracks", track | {"isrc": "FRZ031400212"})
    assert (again.status, again.json["errors"]) == (422, {"isrc": "Another of your tracks has this ISRC."})
    without = (await client.post("tracks", track)).json["track"]
    assert [without[name] for name in more] == [None] * 4
    wrong = await client.post("albums", album | {"upc": "036000291453"})
    assert wrong.json["errors"] == {"upc": "Must be a UPC or EAN; the check digit of 036000291453 is wrong."}
