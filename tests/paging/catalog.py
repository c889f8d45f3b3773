"""The catalog of the test data: artists, albums, tracks with plays, likes and reposts, comments."""

from collections.abc import Sequence

from musicsvc.store.catalog import albums, artists, tracks
from musicsvc.store.engagement import comments, likes
from musicsvc.store.models import AlbumArtist, Comment
from musicsvc.store.plays import ingest, periods
from tests.paging.world import Row, World

GENRES = {"Zouk": "zouk", "ambient": "ambient", "Éthio": "éthio", "10 Step": "10-step", "a-ha": "a-ha", "東京": "東京"}
SCALES = ("Major", None, "Minor")
KEYS = ("C#", None, "A", "F")
LICENSES = ("both", "non_exclusive_only", "exclusive_only")
EXCLUSIVE = ("sold", "available", "not_available")


def fill(world: World) -> None:
    """Add the catalog."""
    _add_artists(world)
    _add_albums(world)
    _add_tracks(world)
    _add_likes(world)
    _add_comments(world)


def _add_artists(world: World) -> None:
    for number in range(44):
        image = None if number % 3 else f"https://img.test/artists/{number}.png"
        name = f"Artist {number * 7 % 44}"
        manager = world.callers["ben" if number == 40 else "ann"]
        row = artists.create(name, "Not shown.", image, now=world.tick(), actor=manager)
        if number % 4 == 0:
            artists.verify(row.id, now=world.now)
        counts = {"albums_count": 0, "tracks_count": 0}
        facts = {"id": row.id, "verified": number % 4 == 0, "created_at": world.now, "manager": manager.user_id}
        world.artists.append({"name": name, "image_small": image} | facts | counts)


def _add_albums(world: World) -> None:
    """39 albums, 26 of them by the star: alone, first, or second after an artist with a higher id."""
    for number in range(39):
        other = world.artists[8 + number % 30]
        by = [[world.star], [other, world.star], [other], [world.star, world.artists[2]], [world.star], [other]][
            number % 6
        ]
        _add_album(world, number, by)


def _add_album(world: World, number: int, credited: Sequence[Row]) -> None:
    values = {
        "name": f"Album {number * 11 % 39}",
        "image": None if number % 5 == 0 else f"https://img.test/albums/{number}.png",
        "upc": "036000291452" if number % 4 else None,
        "label": f"Label {number % 6}" if number % 3 else None,
        "release_date": None if number % 7 == 0 else f"20{10 + number * 7 % 5}-0{1 + number % 3}-15",
        "description": f"Description {number}" if number % 2 else None,
    }
    first = credited[0]["id"]
    row = albums.create(values, first, (), now=world.tick(), actor=world.callers["ann"])
    for position, artist in enumerate(credited):
        if position:
            AlbumArtist.create(album=row.id, artist=artist["id"], position=position)
        artist["albums_count"] += 1
    world.albums.append(values | {"id": row.id, "created_at": world.now, "by": credited})


def _add_tracks(world: World) -> None:
    """51 tracks, 35 of them by the star; many have equal numbers of plays, some none."""
    for number in range(51):
        other, third = world.artists[40 - number % 30], world.artists[3]
        by = [[world.star], [other, world.star, third], [other]][number % 3 if number < 48 else 0]
        album = None if number % 4 == 3 else world.albums[number * number % 39]
        _add_track(world, number, by, album)


def _add_track(world: World, number: int, credited: Sequence[Row], album: Row | None) -> None:
    values = _track_values(number)
    word, series = list(GENRES)[number % 6], number // 6
    tags = [f"tag {number}"] if number % 2 else []
    row = tracks.create(
        values | {"album_id": album and album["id"]},
        [artist["id"] for artist in credited],
        genre=None if number % 10 == 9 else f"{word} {series}",
        tag_names=tags,
        now=world.tick(),
        actor=world.callers["ann"],
    )
    names = {"name": f"{GENRES[word]}-{series}", "display_name": f"{word} {series}"}
    genre = [{"id": each[0]} | names for each in row.genres]
    world.genres += genre
    heard = [ingest.ReportedPlay(row.id, world.now - each * periods.SLOT, "fan") for each in range(number * 5 % 9)]
    ingest.report(heard, now=world.now, actor=world.callers["ann"]._replace(reports_plays=True))
    for artist in credited:
        artist["tracks_count"] += 1
    counts = {"plays": len(heard), "likes": 0, "reposts": 0}
    facts = {"id": row.id, "created_at": world.now, "by": credited, "album": album, "genres": genre}
    world.tracks.append(values | counts | facts | {"tags": [(row.tags[0][0], tags[0])] if tags else []})


def _track_values(number: int) -> Row:
    return {
        "name": f"Track {number * 13 % 51}",
        "release_date": f"2019-12-{1 + number % 28:02}" if number % 2 else None,
        "image": f"https://img.test/tracks/{number}.png" if number % 3 else None,
        "duration": 59_999 + number * 173_001,
        "description": f"About {number}" if number % 5 else None,
        "bpm": 60 + number if number % 3 else None,
        "key": KEYS[number % 4],
        "scale": SCALES[number % 3],
        "price": number / 4 if number % 6 else None,
        "currency": "EUR" if number % 2 else "USD",
        "licensing_type": LICENSES[number % 3],
        "exclusive_status": EXCLUSIVE[number % 3],
        "exclusive_price": 100.5 + number if number % 4 else None,
        "external_id": f"ext {number}" if number % 2 else None,
        "isrc": f"GBAYE68{number:05}" if number % 3 else None,
        "track_number": 1 + number if number % 5 else None,
        "disc_number": 1 + number % 2 if number % 4 else None,
        "explicit": (True, False, None)[number % 3],
    }


def _add_likes(world: World) -> None:
    """More likes than any track has plays, more reposts than likes."""
    for number, track in enumerate(world.tracks[:12]):
        track["likes"], track["reposts"] = 9 + number % 4, 13 + number % 5
        for kind, count in ((likes.LIKE, track["likes"]), (likes.REPOST, track["reposts"])):
            for fan in world.fans[:count]:
                likes.add(kind, track["id"], now=world.tick(), actor=fan)
    chosen = [world.tracks[number * 16 % 51] for number in range(48)]
    for kind, counter, given, listed in (
        (likes.LIKE, "likes", chosen[:47], world.liked),
        (likes.REPOST, "reposts", chosen[::-1], world.reposted),
    ):
        for track in given:
            likes.add(kind, track["id"], now=world.tick(), actor=world.callers["ann"])
            track[counter] += 1
            listed.append(track)


def _add_comments(world: World) -> None:
    """28 comments on the first track: roots out of order, replies at three depths, two deleted; one on the second."""
    track, other = world.tracks[0], world.tracks[1]
    for number in range(28):
        parent = world.comments[number * 5 % (number - 1)] if number % 4 > 1 else None
        position = None if parent else number * 37 % 5 * 20
        _add_comment(world, number, parent, position, track["id"])
    answered = [row for row in world.comments if any(reply["parent"] is row for reply in world.comments)]
    for row in (answered[0], answered[-1]):
        comments.delete(Comment.get_by_id(row["id"]))
        row |= {"deleted": True, "content": ""}
    comments.create(other["id"], "Elsewhere", now=world.tick(), actor=world.fans[0])


def _add_comment(world: World, number: int, parent: Row | None, position: int | None, track_id: int) -> None:
    by, text = world.fans[number * 5 % 26], f"Comment {number * 17 % 28}"
    parent_id = parent["id"] if parent else None
    row = comments.create(track_id, text, position=position, parent_id=parent_id, now=world.tick(), actor=by)
    place = parent["position"] if parent else position
    depth = parent["depth"] + 1 if parent else 0
    facts = {"id": row.id, "content": text, "position": place, "depth": depth, "deleted": False}
    world.comments.append(facts | {"by": by.user_id, "parent": parent})
