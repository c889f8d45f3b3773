"""Pages compare up to five artists, albums or tracks, and share links show the same figures."""

import pytest

from musicsvc.store.models import Album, AlbumArtist, Artist, Track
from musicsvc.store.playlists import playlists
from tests.server.pages.test_figures import growth, shown
from tests.support.html_page import HtmlPage
from tests.support.shared_server import on_shared_loop
from tests.support.signed_in import World

pytestmark = [pytest.mark.only_on("sqlite"), on_shared_loop]
DAYS = "from=2026-01-15&to=2026-02-20"


def query(kind: str, *ids: int, days: str = DAYS) -> str:
    """Return the query that checked boxes of a table send."""
    return "&".join([f"kind={kind}", *(f"ids={each}" for each in ids), days])


async def expected(world: World, kind: str, ids: list[int]) -> list[list[str]]:
    found = []
    for each in ids:
        data = await world.api(f"{kind}s/{each}?{DAYS}")
        change = data["growth"]
        found.append(
            [
                *(shown(data["plays"]["period"]), growth(change["plays_change"])),
                *(shown(data["listeners"]["unique"]), growth(change["listeners_change"])),
                *map(shown, data["engagement"].values()),
                shown(data["plays"]["total"]),
            ]
        )
    return found


@pytest.mark.parametrize("kind", ["artist", "album", "track"])
async def test_a_comparison_has_the_figures_of_the_api_and_so_has_its_link(world: World, kind: str) -> None:
    ids = [*reversed(getattr(world.made, f"{kind}s")[:3])]
    page = await world.page(f"/insights/compare?{query(kind, *ids, ids[0])}")
    rows = [row[1:8] for row in page.table(kind.capitalize())]
    assert rows == await expected(world, kind, ids)
    points = [(await world.api(f"{kind}s/{each}/charts?{DAYS}"))["points"] for each in ids]
    assert [row[1:] for row in page.table("Day")] == [
        [shown(point[name]) for point in of for name in ("plays", "listeners")] for of in zip(*points, strict=True)
    ]

    path = f"/insights/compare/share?kind={kind}&ids={','.join(map(str, ids))}&{DAYS}"
    answer = await world.browser.post(path, {"days": "9"})
    assert answer.status == 201, answer.body
    (link,) = {found for found in HtmlPage(answer.body).links() if "/reports/" in found}
    shared = HtmlPage((await world.shared.client.holding(None).get(link)).body)
    assert [row[1:8] for row in shared.table(kind.capitalize())] == rows
    assert shared.table("Day") == page.table("Day")
    assert not [target for target in shared.links() if target.startswith("/insights")]
    settings = await world.page("/settings")
    assert f"{kind.capitalize()}s compared, 15 Jan 2026 to 20 Feb 2026" in settings.text


async def test_subjects_are_added_by_their_names_and_removed(world: World) -> None:
    first, second, *_ = world.made.tracks
    own = await world.page(f"/insights/track/{first}?{DAYS}")
    start = f"/insights/compare?kind=track&ids={first}&{DAYS}"
    assert start in own.links()
    page = await world.page(f"{start}&q=rack")
    targets = [each for each in page.links() if each.startswith("/insights/compare?kind=track&ids=") and DAYS in each]
    assert len(targets) == len(world.made.tracks)  # one to remove, the others to add
    added = await world.page(next(each for each in targets if f"ids={first}%2C{second}&" in each))
    names = [row[0].split() for row in added.table("Track")]
    assert names == [["Track", "0", "Artist", "0"], ["Track", "1", "Artist", "0,", "Artist", "1"]]
    left = await world.page(next(each for each in added.links() if f"ids={second}&" in each))
    assert [row[0].startswith("Track 1") for row in left.table("Track")] == [True]


async def proposed(world: World, kind: str, *ids: int) -> list[int]:
    """Return the last one of the ids that each proposal would compare."""
    page = await world.page(f"/insights/compare?{query(kind, *ids)}")
    chosen = "".join(f"{each}%2C" for each in ids)
    starts = f"/insights/compare?kind={kind}&ids={chosen}"
    found = [each.removeprefix(starts).partition("&")[0] for each in page.links() if each.startswith(starts)]
    return [int(each) for each in found if each.isdigit()]


@pytest.mark.parametrize("kind", ["artist", "track"])
async def test_what_was_played_most_is_proposed(world: World, kind: str) -> None:
    plays = {
        each: (await world.api(f"{kind}s/{each}?{DAYS}"))["plays"]["period"] for each in getattr(world.made, f"{kind}s")
    }
    order = sorted(plays, key=lambda each: (-plays[each], -each))
    assert await proposed(world, kind) == order[:5]
    assert await proposed(world, kind, order[0]) == order[1:6]
    page = await world.page(f"/insights/compare?{query(kind)}")
    assert f"Your most played {kind}s:" in page.text
    assert f"{plays[order[0]]:,} plays in this period" in page.text


async def test_beside_an_album_those_of_its_artist_are_proposed_first(world: World) -> None:
    def add(manager: int | None) -> list[int]:
        """Create an artist with two albums that were never played."""
        artist = Artist.create(name="Clara", manager=manager, created_at=1)
        albums = [Album.create(name="Unheard", created_at=1).id for _ in range(2)]
        for album in albums:
            AlbumArtist.create(album=album, artist=artist, position=0)
        return albums

    manager = world.made.manager.user_id
    (one, other), theirs = world.shared.store.write(lambda: [add(manager), add(None)]).result()
    played, *_ = await proposed(world, "album")
    assert played == world.made.albums[0]
    assert (await proposed(world, "album", one))[:2] == [other, played]
    assert not {*theirs} & {*await proposed(world, "album", one)}
    tracks = world.made.tracks
    assert await proposed(world, "track", *tracks) == []  # as many as can be compared


async def test_what_cannot_be_compared_is_said(world: World) -> None:
    tracks, artist = world.made.tracks, world.made.artists[0]

    def add() -> list[int]:
        """Create six albums of the artist."""
        found = [Album.create(name=f"Volume {number}", created_at=1).id for number in range(6)]
        AlbumArtist.insert_many([(album, artist, 0) for album in found]).execute()
        return found

    six = world.shared.store.write(add).result()
    other = world.made.artists[-1] + 1  # another account's
    for status, wrong, text in (
        (200, query("album", *six), "These are the first of the 6 that you chose"),
        (422, query("track", *range(1, 22)), "Must have at most 20 entries."),
        (422, "kind=track&ids=x", "Must be ids of artists, albums or tracks"),
        (422, f"kind=song&ids={artist}", "Must be one of"),
        (404, "kind=album&ids=999999", "There is no such album."),
        (403, query("artist", other), "another account"),
        (422, f"{query('track', tracks[0])}&kind=album", "only once"),
    ):
        answer = await world.browser.get(f"/insights/compare?{wrong}")
        shown = HtmlPage(answer.body).text
        assert (answer.status, text in shown, "marked field" in shown) == (status, True, False), (wrong, shown)
    first = await world.page(f"/insights/compare?{query('album', *six[:5], six[0], *six)}")
    assert [row[0].partition(" ")[2] for row in first.table("Album")] == [f"{each} Artist 0" for each in range(5)]
    answer = await world.browser.post(f"/insights/compare/share?{query('track')}", {"days": "9"})
    assert (answer.status, "Nothing is chosen." in HtmlPage(answer.body).text) == (422, True)
    answer = await world.browser.post(f"/insights/compare/share?{query('artist', other)}", {"days": "9"})
    assert answer.status == 403


# The page of an artist, album or track shows hours in a time zone, what contains it, and a link to its picture.


async def test_hours_are_shown_in_a_time_zone_that_stays_chosen(world: World) -> None:
    path = f"/insights/artist/{world.made.artists[0]}?{DAYS}"
    (utc,) = [rows for rows in (await world.page(path)).tables if rows[0][0] == "UTC"]
    (local,) = [rows for rows in (await world.page(f"{path}&zone=Asia/Kolkata")).tables if rows[0][0] == "Local"]
    week, shifted = ([count for row in rows[1:] for count in row[1:]] for rows in (utc, local))
    assert shifted == week[-5:] + week[:-5]  # half past begins the hour
    assert local[0][1:3] == ["0:30", "1:30"]
    page = await world.page(f"{path}&zone=Europe/Berlin")
    assert "Hours in Europe/Berlin. The days of the period are days in UTC." in page.text
    related = [target for target in page.links() if target.startswith("/insights/track/") and DAYS in target]
    assert len(related) > 1
    assert all(target.endswith("&zone=Europe%2FBerlin") for target in related)
    for wrong in ("Mars/Olympus", "../UTC", ""):
        assert (await world.browser.get(f"{path}&zone={wrong}")).status == 422


async def test_public_playlists_with_a_track_are_named_and_its_picture_is_a_link(world: World) -> None:
    store, made, picture = world.shared.store, world.made, "https://images.label.test/rags.jpg"

    def fill() -> None:
        Album.update(image=picture).where(Album.id == made.albums[0]).execute()
        for name, public in (("Rags & more", True), ("Mine", False)):
            values = {"name": name, "public": public, "collaborative": False}
            row = playlists.create(values, now=1, actor=made.manager)
            playlists.append(row.id, made.tracks[:2], actor=None, now=1)

    store.write(fill).result()
    likes = store.read(lambda: Track.get_by_id(made.tracks[1]).likes_count).result()
    page = await world.page(f"/insights/track/{made.tracks[1]}?{DAYS}")
    counts = (
        f"Playlists 2 with this track, 1 public Collections 0 with this track Likes of all time {likes} of this track"
    )
    assert counts in page.text
    assert "Public playlists with this track: Rags & more" in page.text
    assert "Mine" not in page.text
    assert picture in page.links()
    assert not [found for tag, found in page.attributes if tag == "img" and picture in (found["src"] or "")]
    assert "Rags & more" not in (await world.page(f"/insights/album/{made.albums[0]}")).text
