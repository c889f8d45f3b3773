"""An artist that is several is split by a page that shows first what its parts get."""

import re
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from musicsvc.store.models import Album, AlbumArtist, Artist, SecurityEvent, Track, TrackArtist, User
from tests.support.html_page import HtmlPage
from tests.support.page_client import add_account
from tests.support.shared_server import on_shared_loop
from tests.support.signed_in import Person

pytestmark = pytest.mark.usefixtures("developer")  # splits need API access
PATH = "/insights/artist/split"


def duo(manager: int, name: str = "Ann & Bob") -> int:
    """Create an artist with a track and an album."""
    artist = Artist.create(name=name, manager=manager, created_at=1).id
    track = Track.create(name="Duo", duration=60_000, created_at=1)
    TrackArtist.create(track=track, artist=artist, position=0)
    album = Album.create(name="Duos", created_at=1)
    AlbumArtist.create(album=album, artist=artist, position=0)
    return int(artist)


async def get(person: Person, path: str, status: int = 200) -> HtmlPage:
    answer = await person.browser.get(path)
    assert answer.status == status, answer.body
    return HtmlPage(answer.body)


@on_shared_loop
async def test_a_page_shows_the_parts_and_what_they_get_and_its_button_splits(person: Person) -> None:
    both = person.do(lambda user: duo(user.id))
    ann = person.do(lambda user: int(Artist.create(name="Ann", manager=user.id, created_at=1).id))
    page = await get(person, f"/insights/artist/{both}")
    (link,) = (each for each in page.links() if each.startswith(PATH))
    form = (await get(person, link)).forms[PATH]
    # Proposed by the sign between the names.
    assert (form["artist"], form["into"]) == (f"Ann & Bob ({both})", "Ann\nBob")
    form = (await get(person, PATH)).forms[PATH]
    assert (form["artist"], form["into"]) == ("", "")
    assert (await get(person, f"{PATH}?artist={ann}")).forms[PATH]["into"] == ""

    query = urlencode({"artist": f"Ann & Bob ({both})", "into": "Bob\r\n\r\n  Ann \r\n"})
    page = await get(person, f"{PATH}?{query}")
    assert "Each of these gets 1 track, 1 album:" in page.text
    assert f"Bob, which is created Ann ({ann})" in page.text
    assert page.forms[PATH]["into"].split() == ["Bob", "Ann", f"({ann})"]
    assert person.do(lambda _: Artist.select().where(Artist.id == both).exists())

    client = person.shared.client.holding(person.token()[1])
    cursor = (await client.get("changes")).json["cursor"]
    answer = await person.browser.post(PATH, page.forms[PATH])
    assert (answer.status, answer.headers["Location"]) == (303, "/insights/artists")
    assert "Ann & Bob is split into Bob, Ann." in (await get(person, "/insights/artists")).text
    assert (await person.browser.get(f"/insights/artist/{both}")).status == 404
    assert (await client.get(f"artists/{both}")).status == 404
    changes = (await client.get(f"changes?since={cursor}")).json["changes"]
    assert {"model_type": "artist", "id": both, "change": "deleted", "merged_into": None} in changes
    assert "Duo" in (await get(person, f"/insights/artist/{ann}")).text
    credit = TrackArtist.select(Artist.name).join(Artist).join_from(TrackArtist, Track).where(Track.name == "Duo")
    mine = credit.where(Artist.manager == person.id).order_by(TrackArtist.position)
    assert person.do(lambda _: [*mine.tuples()]) == [("Bob",), ("Ann",)]
    in_another_tab = page.forms[PATH] | {"artist": both, "form_token": await person.browser.form_token()}
    assert (await person.browser.post(PATH, in_another_tab)).status == 422


@on_shared_loop
async def test_many_long_names_are_cut_in_the_sentence_that_says_what_was_done(person: Person) -> None:
    both = person.do(lambda user: duo(user.id))
    parts = "\n".join(f"{number} {'𝄞' * 250}" for number in range(10, 60))
    typed = {"artist": f"Ann & Bob ({both})", "into": parts}
    preview = await person.browser.post(PATH, typed | {"preview": "on"})
    assert (preview.status, "Split Ann & Bob?" in HtmlPage(preview.body).text) == (200, True)
    answer = await person.browser.post(PATH, HtmlPage(preview.body).forms[PATH])
    assert (answer.status, len(answer.headers["Set-Cookie"]) < 3_100) == (303, True)
    shown = (await get(person, "/insights/artists")).text
    assert re.search("Ann & Bob is split into 10 𝄞{250}, 11 𝄞{200,249}…", shown)


@on_shared_loop
async def test_what_cannot_be_split_is_shown_again_with_the_reason(person: Person) -> None:
    both = person.do(lambda user: duo(user.id))

    def twins(user: User) -> None:
        for _ in range(2):
            Artist.create(name="Twin", manager=user.id, created_at=1)

    person.do(twins)
    refused: list[tuple[str, str, str]] = [
        ("artist", "No one", "There is no artist named No one."),
        ("artist", "99999", "There is no such artist."),
        ("into", "", "Name 2 to 50 artists, not 0."),
        ("into", "Ann", "Name 2 to 50 artists, not 1."),
        ("into", "\n".join(f"Part {n}" for n in range(51)), "Name 2 to 50 artists, not 51."),
        ("into", f"Ann\n{'x' * 256}", "Must have at most 255 characters."),
        ("into", "Ann\n\u200b", "visible character"),
        ("into", "Ann\nAnn & Bob", "cannot be a part of itself."),
        ("into", "Ann\nann\nAnn", "Ann is named twice."),
        ("into", "Ann\n99999", "There is no artist 99999."),
        ("into", "Ann\nTwin", "Several artists are named Twin:"),
    ]
    for name, text, message in refused:
        typed: dict[str, Any] = {"artist": str(both), "into": "Ann\nBob"} | {name: text}
        page = await get(person, f"{PATH}?{urlencode(typed)}", 422)
        assert page.text.count(message) == 1, (text, page.text)
        assert page.forms[PATH]["artist"] == typed["artist"]
        assert page.forms[PATH]["into"].split() == typed["into"].split()
        for button in ({}, {"preview": "on"}):
            answer = await person.browser.post(PATH, typed | button)
            assert (answer.status, HtmlPage(answer.body).text.count(message)) == (422, 1)
    assert person.do(lambda _: Artist.get_by_id(both).name) == "Ann & Bob"


@on_shared_loop
async def test_artists_of_others_are_split_by_administrators_only(person: Person) -> None:
    label = add_account(person.shared, "duos@label.test")
    theirs = person.do(lambda _: duo(label, "Cy & Dee"))
    own = person.do(lambda user: duo(user.id))
    for artist, into in ((theirs, "Ann\nBob"), (own, f"Ann\n{theirs}"), (own, f"Ann\nCy & Dee ({theirs})")):
        assert (await person.browser.get(f"{PATH}?artist={artist}&into={quote(into)}")).status == 403
        assert (await person.browser.post(PATH, {"artist": artist, "into": into})).status == 403

    person.do(lambda user: User.update(admin=True).where(User.id == user.id).execute())
    assert (await person.browser.post(PATH, {"artist": theirs, "into": "Cy\nDee"})).status == 303
    parts = Artist.select(Artist.manager).where(Artist.name.in_(("Cy", "Dee")))
    assert person.do(lambda _: [*parts.tuples()]) == [(label,), (label,)]
    event = person.do(lambda _: SecurityEvent.get(SecurityEvent.kind == "artist.split", SecurityEvent.actor == "admin"))
    assert (event.actor_id, event.account_id) == (person.id, label)
