"""Artists, albums and tracks are edited on pages, by the rules of the API, and by two people at once."""

import asyncio
import re
from collections.abc import Mapping
from html import unescape
from typing import Any

import pytest

from musicsvc.server.request import running
from musicsvc.store.accounts import api_access, kept_answers
from musicsvc.store.catalog import genres
from musicsvc.store.catalog.fields import FIELDS
from musicsvc.store.models import (
    Album,
    AlbumArtist,
    Artist,
    Comment,
    Playlist,
    PlaylistTrack,
    Track,
    TrackArtist,
    TrackGenre,
    TrackLike,
    TrackTag,
)
from tests.server.handlers.test_editing import FULL
from tests.support.html_page import HtmlPage
from tests.support.serving import Answer, Client
from tests.support.shared_server import on_shared_loop
from tests.support.signed_in import Person

pytestmark = pytest.mark.usefixtures("developer")  # changes of the catalog need API access

LONG = "\U0001d11e" * 255
MEANWHILE = "Somebody else has changed this"


def subjects(person: Person, noun: str) -> list[int]:
    """Create two artists, albums or tracks of the account that differ in their ids only. Return the ids."""

    def make(user: Any) -> int:
        artist = Artist.create(name="Clara", manager=user.id, created_at=1).id
        if noun == "artist":
            return int(artist)
        model, link = (Album, AlbumArtist) if noun == "album" else (Track, TrackArtist)
        length = {"duration": 1_000} if noun == "track" else {}
        row: int = model.create(name="Air", created_at=1, **length).id
        link.create(**{noun: row, "artist": artist, "position": 0})
        return row

    return [person.do(make) for _ in range(2)]


def api(person: Person) -> Client:
    person.do(lambda user: api_access.grant(user, now=1))
    return person.shared.client.holding(person.token()[1])


async def form(person: Person, noun: str, row: int) -> dict[str, str]:
    """Return what a browser sends if the form is not touched."""
    path = f"/insights/{noun}/{row}/edit"
    return HtmlPage((await person.browser.get(path)).body).forms[path]


async def save(person: Person, noun: str, row: int, sent: Mapping[str, str]) -> Answer:
    return await person.browser.post(f"/insights/{noun}/{row}/edit", sent)


async def shown(client: Client, noun: str, row: int) -> dict[str, Any]:
    query = "?with=tags,genres" if noun == "album" else ""
    return dict((await client.get(f"{noun}s/{row}{query}")).json[noun])


@pytest.mark.parametrize("noun", FIELDS)
@on_shared_loop
async def test_an_edit_on_the_page_equals_a_patch(person: Person, noun: str) -> None:
    client = api(person)
    edited, patched = subjects(person, noun)
    other, _ = subjects(person, "artist")
    person.do(lambda _: Artist.update(name="Louise; Two").where(Artist.id == other).execute())
    album, _ = subjects(person, "album")
    values = {
        name: {"artist_id": other, "artists": [other], "album_id": album}.get(name, value)
        for name, value in FULL[noun].items()
    }
    chosen = {"artist_id": "Louise; Two", "artists": ["Louise; Two"], "album_id": f"Air ({album})"}
    sent = await form(person, noun, edited)
    for field in FIELDS[noun]:
        typed = field.show(chosen.get(field.name, values[field.name]))
        sent[f"{field.name}.0" if field.form == "artists" else field.name] = typed.strip()
    answer = await save(person, noun, edited, sent)
    assert (answer.status, answer.headers["Location"]) == (303, f"/insights/{noun}/{edited}")
    own = {name: "DEA624101235" for name in values if name == "isrc"}  # unique
    assert (await client("PATCH", f"{noun}s/{patched}", values | own)).status == 200
    found = await shown(client, noun, edited)
    assert found == await shown(client, noun, patched) | {name: found[name] for name in ("id", *own)}
    assert [found[name] for name in ("name", *own)] == [values[name] for name in ("name", *own)]

    emptied = await form(person, noun, edited)
    emptied |= {field.name: "" for field in FIELDS[noun] if field.optional}
    assert (await save(person, noun, edited, emptied)).status == 303
    nothing = {field.name: None for field in FIELDS[noun] if field.optional}
    assert (await client("PATCH", f"{noun}s/{patched}", nothing)).status == 200
    found = await shown(client, noun, edited)
    assert found == await shown(client, noun, patched) | {"id": edited}


@on_shared_loop
async def test_a_form_that_was_not_touched_changes_nothing_whatever_the_texts_are(person: Person) -> None:
    row, _ = subjects(person, "track")
    odd = {"name": "Two\nlines", "description": "\n\r\n old\r Mac\n", "duration": 61_007, "price": 1e-07}
    person.do(lambda _: Track.update(**odd).where(Track.id == row).execute())
    answer = await save(person, "track", row, await form(person, "track", row))
    assert answer.status == 303
    assert "There was nothing to change." in unescape(
        (await person.browser.get(answer.headers["Location"])).body.decode()
    )
    kept = person.do(lambda _: Track.get_by_id(row))
    assert {name: getattr(kept, name) for name in odd} == odd
    assert kept.edited_at is None


@on_shared_loop
async def test_errors_of_the_api_stand_beside_the_fields_with_what_was_typed(person: Person) -> None:
    row, other = subjects(person, "track")
    person.do(lambda _: Track.update(isrc="DEA624101234").where(Track.id == other).execute())
    person.do(lambda _: [TrackGenre.create(track=row, genre=each) for each in genres.ensure(["Dance", "Rag"]).values()])
    sent = await form(person, "track", row)
    assert sent["genre"] == "Dance"
    wrong = {
        "name": " ",
        "duration": "3:4",
        "artists.1": "Nobody",
        "bpm": "7",
        "tags": "t" * 61,
        "album_id": "9999",
        "genre": "",
    }
    answer = await save(person, "track", row, sent | wrong | {"label": "x"})
    page = HtmlPage(answer.body)
    assert answer.status == 422
    shown = page.forms[f"/insights/track/{row}/edit"]
    assert {name: shown[name] for name in wrong} == wrong
    for message in (
        "This field is required.",
        "Must be a length such as 3:45, or in milliseconds.",
        "There is no artist named Nobody.",
        "Must be at least 20.",
        "Must have at most 60 characters.",
        "9999 does not exist.",
        "Another one replaces all of its genres: Dance; Rag.",
    ):
        assert page.text.count(message) == 1
    many = await save(person, "track", row, sent | {f"artists.{number}": sent["artists.0"] for number in range(900)})
    assert (many.status, "Must have at most 50 entries." in HtmlPage(many.body).text) == (422, True)
    taken = await save(person, "track", row, sent | {"isrc": "dea624101234"})
    assert (taken.status, "Another of your tracks has this ISRC." in HtmlPage(taken.body).text) == (422, True)
    stranger = person.do(lambda _: Artist.create(name="Theirs", created_at=1)).id
    theirs = await save(person, "track", row, sent | {"artists.0": str(stranger)})
    assert (theirs.status, "You manage none of these artists." in HtmlPage(theirs.body).text) == (409, True)
    assert HtmlPage(theirs.body).forms[f"/insights/track/{row}/edit"]["artists.0"] == str(stranger)
    assert person.do(lambda _: Track.get_by_id(row)).edited_at is None


@on_shared_loop
async def test_a_form_begins_with_what_names_a_row_and_folds_price_and_licence_until_they_are_used(
    person: Person,
) -> None:
    row, _ = subjects(person, "track")

    def folded(answer: Answer) -> tuple[list[str], bool]:
        """Return the fields in the fold, and whether it is open."""
        page = answer.body.decode()
        start, end = page.index("<details"), page.index("</details>")
        names = re.findall(r'<(?:input|select) id="(\w+)"', page[start:end])
        return names, page[start:].startswith("<details open>")

    path = f"/insights/track/{row}/edit"
    sale = ["price", "currency", "licensing_type", "exclusive_status", "exclusive_price"]
    first = ["name", "artists.0", "artists.1", "artists.2", "album_id", "isrc", "track_number", "disc_number"]
    shown = await person.browser.get(path)
    fields = [each for each in HtmlPage(shown.body).forms[path] if not each.startswith(("was.", "form_token"))]
    assert (fields[: len(first)], fields[-len(sale) :]) == (first, sale)
    assert (folded(shown), shown.body.count(b"Such as 12.50.")) == ((sale, False), 2)
    assert folded(await save(person, "track", row, await form(person, "track", row) | {"bpm": "7"})) == (sale, False)
    for wrong in ({"exclusive_price": "much"}, {"currency": ""}, {"bpm": "7", "licensing_type": "both"}):
        refused = await save(person, "track", row, await form(person, "track", row) | wrong)
        assert (refused.status, folded(refused)) == (422, (sale, True)), wrong
    person.do(lambda _: Track.update(currency="EUR").where(Track.id == row).execute())
    assert folded(await person.browser.get(path)) == (sale, True)
    assert folded(await person.browser.get("/insights/track/new")) == (sale, False)
    album, _ = subjects(person, "album")
    fields = [*(await form(person, "album", album))]
    assert [each for each in fields if not each.startswith("was.")][1:4] == ["name", "artist_id", "upc"]
    assert b"<details" not in (await person.browser.get(f"/insights/album/{album}/edit")).body


@on_shared_loop
async def test_of_two_people_who_edit_at_once_nobody_overwrites_the_other_unasked(person: Person) -> None:
    row, _ = subjects(person, "track")
    mine, theirs = await form(person, "track", row), await form(person, "track", row)
    assert (
        await save(person, "track", row, theirs | {"name": "Aria", "bpm": "60", "tags": "slow", "currency": "EUR"})
    ).status == 303

    # Another field alone is merged with theirs.
    assert (await save(person, "track", row, mine | {"genre": "Baroque"})).status == 303
    # The same field to the same value is no conflict, to another one is.
    answer = await save(person, "track", row, mine | {"name": "Arioso", "bpm": "60", "isrc": "DEA624101235"})
    page = HtmlPage(answer.body)
    again = page.forms[f"/insights/track/{row}/edit"]
    assert (answer.status, page.text.count(MEANWHILE), page.text.count("Now it is: Aria")) == (422, 1, 1)
    typed = {"name": "Arioso", "bpm": "60", "isrc": "DEA624101235"}
    assert typed | {"tags": "slow\n", "currency": "EUR"} == {name: again[name] for name in (*typed, "tags", "currency")}
    found = person.do(lambda _: Track.get_by_id(row))
    assert (found.name, found.bpm, found.isrc) == ("Aria", 60, None)
    # After the message, saving replaces what it has shown, but not what came later.
    person.do(lambda _: Track.update(name="Adagio").where(Track.id == row).execute())
    later = await save(person, "track", row, again)
    assert (later.status, HtmlPage(later.body).text.count("Now it is: Adagio")) == (422, 1)
    assert (await save(person, "track", row, HtmlPage(later.body).forms[f"/insights/track/{row}/edit"])).status == 303
    found = person.do(lambda _: Track.get_by_id(row))
    assert (found.name, found.bpm, found.isrc) == ("Arioso", 60, "DEA624101235")
    labels = person.do(lambda _: [model.select().where(model.track == row).count() for model in (TrackGenre, TrackTag)])
    assert labels == [1, 1]


@pytest.mark.on_both
@on_shared_loop
async def test_of_two_forms_that_are_sent_at_once_one_is_saved(person: Person) -> None:
    row, _ = subjects(person, "track")
    sent = await form(person, "track", row)
    words = ("Aria", "Arioso", "Adagio", "Allegro")
    answers = await asyncio.gather(*(save(person, "track", row, sent | {"name": name}) for name in words))
    assert sorted(answer.status for answer in answers) == [303, 422, 422, 422]
    (saved,) = (name for name, answer in zip(words, answers, strict=True) if answer.status == 303)
    assert person.do(lambda _: Track.get_by_id(row)).name == saved


@pytest.mark.parametrize("noun", FIELDS)
@on_shared_loop
async def test_a_form_that_is_sent_twice_creates_one_row_and_a_form_shown_anew_another(
    person: Person, noun: str
) -> None:
    artist, _ = subjects(person, "artist")
    path, name = f"/insights/{noun}/new?artist={artist}", f"A pair {person.id}"
    model: Any = {"artist": Artist, "album": Album, "track": Track}[noun]
    typed = {"name": name} | ({"duration": "3:45"} if noun == "track" else {})
    sent = [HtmlPage((await person.browser.get(path)).body).forms[path] | typed for _ in range(2)]
    refused = await person.browser.post(path, sent[0] | {"name": ""})
    assert refused.status == 422
    first, second = await asyncio.gather(*(person.browser.post(path, sent[0]) for _ in range(2)))
    later = await person.browser.post(path, sent[0])
    assert [each.status for each in (first, second, later)] == [303, 303, 303]
    assert first.headers["Location"] == second.headers["Location"] == later.headers["Location"]
    assert f"{name} is created." in HtmlPage((await person.browser.get(later.headers["Location"])).body).text
    assert (await person.browser.post(path, sent[1])).headers["Location"] != first.headers["Location"]
    changed = await person.browser.post(path, sent[0] | {"name": f"{name}, too"})
    assert changed.headers["Location"] != first.headers["Location"]
    assert person.do(lambda _: model.select().where(model.name == name).count()) == 2


@on_shared_loop
async def test_a_form_whose_twin_is_still_running_says_so(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "PATIENCE_SECONDS", -1)
    monkeypatch.setattr(kept_answers, "try_lock", lambda _: False)  # as on PostgreSQL
    again = await person.browser.post("/insights/artist/new", {"name": "Trio"})
    page = HtmlPage(again.body)
    assert (again.status, page.forms["/insights/artist/new?"]["name"]) == (409, "Trio")
    assert "This form was sent before, and is still being worked on." in page.text


@on_shared_loop
async def test_an_expired_form_does_not_hide_a_change_of_another(person: Person) -> None:
    row, _ = subjects(person, "artist")
    sent = await form(person, "artist", row)
    person.do(lambda _: Artist.update(name="Fanny").where(Artist.id == row).execute())
    expired = await save(person, "artist", row, sent | {"name": "Louise", "form_token": "0" * 64})
    again = HtmlPage(expired.body).forms[f"/insights/artist/{row}/edit"]
    assert (expired.status, again["name"], "Now it is: Fanny" in HtmlPage(expired.body).text) == (403, "Louise", True)
    assert (await save(person, "artist", row, again)).status == 422
    assert person.do(lambda _: Artist.get_by_id(row)).name == "Fanny"


@on_shared_loop
async def test_a_label_brings_in_an_artist_an_album_and_a_track_by_hand(person: Person) -> None:
    client = api(person)

    async def create(noun: str, query: str, **typed: str) -> dict[str, Any]:
        path = f"/insights/{noun}/new?{query}"
        page = HtmlPage((await person.browser.get(path)).body)
        wrong = await person.browser.post(path, page.forms[path] | typed | {"name": ""})
        assert (wrong.status, HtmlPage(wrong.body).text.count("This field is required.")) == (422, 1)
        answer = await person.browser.post(path, HtmlPage(wrong.body).forms[path] | {"name": f"A new {noun}"})
        assert answer.status == 303, HtmlPage(answer.body).text
        return await shown(client, noun, int(answer.headers["Location"].rpartition("/")[2]))

    artist = await create("artist", "")
    album = await create("album", f"artist={artist['id']}", upc="036000291452", tags="piano")
    track = await create("track", f"album={album['id']}", duration="3:45", isrc="dea624101234", explicit="no")
    assert [each["id"] for each in album["artists"]] == [each["id"] for each in track["artists"]] == [artist["id"]]
    assert (album["name"], album["upc"], track["album_id"]) == ("A new album", "036000291452", album["id"])
    assert (track["duration"], track["isrc"], track["currency"], track["explicit"]) == (
        225_000,
        "DEA624101234",
        "USD",
        False,
    )
    stranger = person.do(lambda _: Artist.create(name="Theirs", created_at=1)).id
    refused = await person.browser.post("/insights/album/new", {"name": "Theirs", "artist_id": str(stranger)})
    assert (refused.status, "You do not manage this artist." in HtmlPage(refused.body).text) == (409, True)


@pytest.mark.parametrize("noun", ["album", "track"])
@on_shared_loop
async def test_an_artist_that_does_not_exist_is_created_once_the_user_says_so(person: Person, noun: str) -> None:
    row, _ = subjects(person, noun)
    path, name = f"/insights/{noun}/{row}/edit", f"Robert & Co. {noun}"
    field = "artists.0" if noun == "track" else "artist_id"
    typed = await form(person, noun, row) | {field: f" {name} ", "name": "Aria"}

    def made() -> list[Any]:
        query = Artist.select(Artist.manager, Artist.name).where(Artist.name == name)
        found: list[Any] = person.do(lambda _: [*query.tuples()])
        return found

    refused = await save(person, noun, row, typed)
    page = HtmlPage(refused.body)
    assert (refused.status, page.text.count(f"There is no artist named {name}.")) == (422, 1)
    assert f"Create {name} as an artist of yours" in page.text
    assert (page.forms[path].get("create.0"), made()) == (None, [])  # not unasked
    assert f"There is no artist named {name}." in HtmlPage((await save(person, noun, row, page.forms[path])).body).text

    agreed = page.forms[path] | {"create.0": name}
    again = HtmlPage((await save(person, noun, row, agreed | {"name": LONG + "x"})).body)
    assert (again.forms[path]["create.0"], made()) == (name, [])  # it stays chosen, and nothing is made
    assert (await save(person, noun, row, agreed | {"create.1": "Not typed"})).status == 303
    assert made() == [(person.id, name)]
    found = await shown(api(person), noun, row)
    assert (found["name"], [artist["name"] for artist in found["artists"]]) == ("Aria", [name])

    for other, message in ((" ", "must contain"), ("x" * 256, "There is no artist named"), ("99999", "does not exist")):
        page = HtmlPage((await save(person, noun, row, agreed | {field: other, "create.0": other})).body)
        assert "as an artist of yours" not in page.text, (other, message)


@on_shared_loop
async def test_a_new_track_creates_the_artists_that_it_names_if_the_user_says_so(person: Person) -> None:
    person.do(lambda user: Artist.create(name="Ann  Example", manager=user.id, created_at=1))
    path = "/insights/track/new"
    sent = HtmlPage((await person.browser.get(path)).body).forms[f"{path}?"] | {"name": "Duo", "duration": "1:00"}
    sent |= {"artists.0": "Ann Example", "artists.1": "Bob Sample"}
    page = HtmlPage((await person.browser.post(path, sent)).body)
    assert page.text.count("as an artist of yours") == 1  # one has the first name, but for a blank
    answer = await person.browser.post(path, sent | {"create.0": "Bob Sample"})
    assert answer.status == 303, HtmlPage(answer.body).text
    names = Artist.select(Artist.name).where(Artist.manager == person.id).order_by(Artist.id)
    assert person.do(lambda _: [*names.tuples()]) == [("Ann  Example",), ("Bob Sample",)]


@on_shared_loop
async def test_a_deletion_says_what_goes_and_asks_and_an_artist_that_is_needed_stays(person: Person) -> None:
    (track, _), (album, _) = subjects(person, "track"), subjects(person, "album")
    artist = person.do(lambda _: TrackArtist.get(TrackArtist.track == track).artist)

    def fill(user: Any) -> None:
        for number in range(3):
            Comment.create(track=track, user=user.id, content="!", position=0, depth=0, place=number, created_at=1)
        TrackLike.create(track=track, user=user.id, created_at=1)
        playlist = Playlist.create(owner=user.id, name="Rags", created_at=1)
        for _ in range(2):
            PlaylistTrack.create(playlist=playlist, track=track, added_at=1)
        Track.update(album=album, name=LONG).where(Track.id == track).execute()

    person.do(fill)

    async def text(noun: str, row: int) -> str:
        return HtmlPage((await person.browser.get(f"/insights/{noun}/{row}/delete")).body).text

    assert "its 3 comments, 1 like and 0 reposts are deleted" in await text("track", track)
    assert "It leaves 1 playlist and 0 collections." in await text("track", track)
    assert "Its tracks stay, without an album: 1 track." in await text("album", album)
    needed = await text("artist", artist)
    assert ("is the only artist of 1 track." in needed, "There is no undo" in needed) == (True, False)
    refused = await person.browser.post(f"/insights/artist/{artist}/delete")
    assert (refused.status, "is the only artist of 1 track." in HtmlPage(refused.body).text) == (409, True)
    notices = ""
    for noun, row in (("album", album), ("track", track), ("artist", artist)):
        assert (await person.browser.post(f"/insights/{noun}/{row}/delete")).headers["Location"] == "/insights"
        notices += HtmlPage((await person.browser.get("/insights")).body).text
        assert (await person.browser.get(f"/insights/{noun}/{row}")).status == 404
    assert f"{LONG} is deleted." in notices
    events = [(event.kind, event.actor) for event in person.events() if event.kind.endswith(".deleted")]
    assert sorted(events) == [(f"{noun}.deleted", "page") for noun in ("album", "artist", "track")]
