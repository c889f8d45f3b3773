"""Pages of what nobody has played yet show the first steps and what of them is done, in place of zeros."""

import re
from typing import Any

import pytest

from musicsvc.store.accounts import api_access
from musicsvc.store.models import Album, AlbumArtist, Artist, Playlist, PlaylistTrack, Track, TrackArtist
from tests.support.html_page import HtmlPage
from tests.support.listening_world import record
from tests.support.oracle import PlayOf
from tests.support.shared_server import on_shared_loop
from tests.support.signed_in import Person

LONG = "W" * 255
STEP = re.compile(r'<li>(?:<s>(.+?)</s> <mark>Done</mark>|<a href="([^"]+)">(.+?)</a>|(.+?))</li>')


async def page(person: Person, path: str) -> tuple[HtmlPage, list[tuple[str, str | None]]]:
    """Return the page with its first steps: each text, with the path of its page, `done`, or None if it waits."""
    answer = await person.browser.get(path)
    assert answer.status == 200, answer.body
    body = answer.body.decode()
    found = STEP.findall(body.partition("data-steps>")[2].partition("</ol>")[0])
    steps = [(done or linked or waits, "done" if done else path or None) for done, path, linked, waits in found]
    return HtmlPage(answer.body), steps


def add(user: Any) -> tuple[int, int, int]:
    """Create an artist with one album, and a track that is not on it."""
    artist = Artist.create(name=LONG, manager=user.id, created_at=1)
    album, track = Album.create(name="Trios", created_at=1), Track.create(name="Air", duration=9_000, created_at=1)
    AlbumArtist.create(album=album, artist=artist, position=0)
    TrackArtist.create(track=track, artist=artist, position=0)
    return artist.id, album.id, track.id


async def done(person: Person, path: str) -> list[bool]:
    return [target == "done" for _, target in (await page(person, path))[1]]


@on_shared_loop
async def test_first_steps_stand_in_place_of_zeros_and_lead_on(person: Person) -> None:
    shown, steps = await page(person, "/insights")
    assert "You manage no artist yet" in shown.text
    assert [target for _, target in steps] == ["/settings/access", None, None, None]  # all wait for access
    person.do(lambda _: api_access.request(person.email, "Music", "1 album", "Label", now=1))
    _, (access, *_) = await page(person, "/insights")
    assert access == ("Wait for access, which an administrator decides about", None)
    person.do(lambda user: api_access.grant(user, now=1))
    assert [target for _, target in (await page(person, "/insights"))[1]] == [
        "done",
        "/import",
        "/import",
        "/settings/developers",
    ]

    artist, album, track = person.do(add)
    pages = {
        "/insights": [True, True, False, False],
        f"/insights/artist/{artist}": [True, True, False, False],
        f"/insights/album/{album}": [True, False, False, False],
        f"/insights/track/{track}": [True, True, False, False],
    }
    for path, expected in pages.items():
        shown, steps = await page(person, path)
        assert [target == "done" for _, target in steps] == expected, path
        assert "Nobody has played" in shown.text
        assert (shown.figures, shown.growth, "Milestones" in shown.text) == ({}, [], False)
        assert not [found for _, found in shown.attributes if found.get("class") == "chart"]
    shown, steps = await page(person, f"/insights/album/{album}")
    assert steps[1] == ("Add the tracks", f"/insights/track/new?album={album}")
    assert steps[2][0].startswith("Ask to import a sheet of plays")
    shown, _ = await page(person, f"/insights/artist/{artist}")
    assert {f"/insights/{kind}/{row}?period=30-days" for kind, row in (("track", track), ("album", album))} < {
        *shown.links()
    }

    person.do(lambda user: api_access.grant(user, plays=True, now=1))
    _, steps = await page(person, f"/insights/track/{track}")
    assert [target for _, target in steps] == ["done", "done", "/import", "/settings/developers"]
    assert steps[2][0].startswith("Import a sheet of plays")


@pytest.mark.on_both
@on_shared_loop
async def test_after_the_first_play_the_figures_are_shown_on_each_page_that_has_it(developer: Person) -> None:
    artist, album, track = developer.do(add)
    now = developer.shared.clock.now()
    developer.do(lambda user: PlaylistTrack.create(
        playlist=Playlist.create(owner=user.id, name="Airs", created_at=1), track=track, added_at=1
    ))  # fmt: skip
    shown, _ = await page(developer, f"/insights/track/{track}")
    assert "Playlists 1 with this track, 0 public" in shown.text  # what is there is shown
    developer.do(lambda _: record([PlayOf(track, now, "x")]))
    for path, played in ((f"artist/{artist}", True), (f"track/{track}", True), (f"album/{album}", False)):
        shown, steps = await page(developer, f"/insights/{path}?period=7-days")
        assert (bool(steps), shown.figures.get("plays.total")) == (not played, "1" if played else None)
    assert (await page(developer, "/insights"))[0].figures["plays.period"] == "1"


@on_shared_loop
async def test_wrong_dates_are_refused_on_pages_without_plays_too(developer: Person) -> None:
    artist, _, _ = developer.do(add)
    answer = await developer.browser.get(f"/insights/artist/{artist}?from=2026-02-01&to=2026-01-01")
    assert (answer.status, "Must not be after the last day." in HtmlPage(answer.body).text) == (422, True)


@pytest.mark.parametrize("kind", ["artist", "album", "track"])
@on_shared_loop
async def test_a_shared_report_without_plays_is_one_sentence(developer: Person, kind: str) -> None:
    row = dict(zip(("artist", "album", "track"), developer.do(add), strict=True))[kind]
    answer = await developer.browser.post(f"/insights/{kind}/{row}/share", {"days": "3"})
    (link,) = {found for found in HtmlPage(answer.body).links() if "/reports/" in found}
    shown = HtmlPage((await developer.browser.get(link.removeprefix(developer.browser.root))).body)
    assert f"Nobody has played this {kind} yet." in shown.text
    assert (shown.figures, shown.tables) == ({}, [])


API_WORDS = re.compile(r"`|\b(POST|PATCH|GET|DELETE) ?/|/api/v1|\bmusicsvc [a-z]+ |--[a-z]{3}|\b[a-z]+_[a-z_]+\b")


@on_shared_loop
async def test_pages_of_labels_have_no_words_of_the_api(developer: Person) -> None:
    artist, album, track = developer.do(add)
    paths = [f"/insights/{kind}/{row}" for kind, row in (("artist", artist), ("album", album), ("track", track))]
    before, now = [*paths], developer.shared.clock.now()
    paths += [f"{path}/{page}" for path in paths for page in ("edit", "delete")]
    paths += [f"/insights/{kind}/new" for kind in ("artist", "album", "track")]
    paths += [f"/insights/artist/{page}" for page in ("merge", "split")]
    paths += [
        "/insights",
        "/insights/tracks",
        "/insights?q=air",
        "/insights/duplicates",
        "/insights/compare",
        "/import",
    ]
    paths += ["/settings", "/settings/data", "/settings/developers"]
    wrong = [f"{before[0]}?from=2026-02-01&to=2026-01-01", "/insights/tracks?sort=x", "/insights/compare?kind=x&ids=y"]

    async def check(*some: str) -> None:
        for path in some:
            text = HtmlPage((await developer.browser.get(path)).body).text
            assert not API_WORDS.findall(text.replace("/settings/developers", "")), path
            assert "Figures" not in text, path

    await check(*paths, *wrong)
    developer.do(lambda _: record([PlayOf(track, now, "x")]))
    developer.do(lambda _: Track.update(album=album).where(Track.id == track).execute())
    await check("/insights", *before, *wrong)
    nobody = developer.do(lambda user: Artist.update(manager=None).where(Artist.manager == user.id).execute())
    assert nobody
    await check("/insights")
    refused = await developer.browser.get("/imports/999999/undo")
    assert not API_WORDS.findall(HtmlPage(refused.body).text)
