"""The page of an artist, album or track shows hours in a time zone, what contains it, and a link to its picture."""

import pytest

from musicsvc.store.models import Album, Track
from musicsvc.store.playlists import playlists
from tests.support.shared_server import on_shared_loop
from tests.support.signed_in import World

pytestmark = [pytest.mark.only_on("sqlite"), on_shared_loop]
DAYS = "from=2026-01-15&to=2026-02-20"


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
