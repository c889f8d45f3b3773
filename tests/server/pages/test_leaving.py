"""Artists are handed over or deleted with the account, on pages, without a terminal."""

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from musicsvc.clock import DAY
from musicsvc.config import Access, Settings
from musicsvc.store.accounts import api_access, tokens
from musicsvc.store.catalog import artists
from musicsvc.store.editing import assignments, offers
from musicsvc.store.editing.offers import Offer
from musicsvc.store.models import Album, AlbumArtist, Artist, ArtistOffer, Track, TrackArtist, User
from musicsvc.store.people import catalogs
from tests.rights.world import PASSWORD
from tests.support import databases
from tests.support.page_client import PageClient, add_account, add_session, text
from tests.support.shared_server import Shared, on_shared_loop, shared_server
from tests.support.signed_in import Person

pytestmark = pytest.mark.only_on("sqlite")  # the store's rules are tested on both in tests/store/editing
HAND_OVER, DELETE = "/settings/delete/hand-over", "/settings/delete"
OFFERED = "waits for 14 days. If an account with API access has this e-mail now, it sees the offer"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(template: databases.Template, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Shared]:
    settings = Settings(access=Access(contact_email="help@label.test"))
    async with shared_server(template, tmp_path_factory.mktemp("shared"), settings) as server:
        yield server


def managing(person: Person, *names: str) -> list[int]:
    """Let the account manage new artists with these names. Return their ids."""
    return person.do(lambda user: [Artist.create(name=name, manager=user.id, created_at=1).id for name in names])  # type: ignore[no-any-return]


def join(person: Person, name: str, **options: Any) -> Person:
    """Create another account, with API access, which is signed in."""
    email = f"{name}{person.id}@label.test"
    number = add_account(person.shared, email, **{"api_access": True, **options})
    browser = PageClient(person.browser._http, person.browser.root)
    browser.cookies = {"musicsvc": add_session(person.shared, number)}
    return Person(person.shared, browser, number, email)


def managers(person: Person, ids: list[int]) -> list[int | None]:
    return person.do(lambda _: [artists.get(number).manager_id for number in ids])  # type: ignore[no-any-return]


def open_offers(person: Person) -> list[Offer]:
    return person.do(lambda user: [*offers.sent(user.id, now=person.shared.clock.now())])  # type: ignore[no-any-return]


def last(person: Person, count: int) -> list[tuple[str, int | None, str | None]]:
    return [(event.kind, event.actor_id, event.reason) for event in person.events()[-count:]]


@on_shared_loop
async def test_all_artists_are_offered_accepted_and_then_the_account_is_deleted(person: Person) -> None:
    ids = managing(person, "Trio", "Duo", "Solo")
    heir = join(person, "heir")
    shown = text(await person.browser.get(DELETE))
    assert "You manage 3 artists." in shown
    assert "help@label.test" in shown
    sent = await person.browser.post(HAND_OVER, {"email": heir.email.upper(), "which": "all"})
    assert (sent.status, sent.headers["Location"]) == (303, DELETE)
    shown = text(await person.browser.get(DELETE))
    assert OFFERED in shown
    assert "All that you manage when it is accepted, now 3 artists: <bdi>Trio, Duo, Solo</bdi>" in shown
    assert managers(person, ids) == [person.id] * 3
    number = open_offers(person)[0].id
    name = person.do(lambda user: user.display_name)
    for path in ("/", "/settings", "/insights"):
        shown = text(await heir.browser.get(path))
        assert f"<strong>{name}</strong> offers you everything they manage" in shown
        assert "now 3 artists: <bdi>Trio, Duo, Solo</bdi>." in shown
        assert f'href="/settings/offers/{number}"' in shown
        assert person.email not in shown
    offer = f"/settings/offers/{number}"
    assert f"<bdi>{name}</bdi> offers you 3 artists" in text(await heir.browser.get(offer))
    refused = await heir.browser.post(f"{offer}/accept", {"password": "a wrong one"})
    assert (refused.status, "The password is wrong." in text(refused)) == (422, True)
    assert managers(person, ids) == [person.id] * 3
    taken = await heir.browser.post(f"{offer}/accept", {"password": PASSWORD})
    assert (taken.status, taken.headers["Location"]) == (303, "/insights")
    assert managers(person, ids) == [heir.id] * 3
    assert last(heir, 2) == [
        ("artist.offered", person.id, f"offer {number}: all 3 artists"),
        ("artist.assigned", None, f"all 3 artists, from account {person.id}"),
    ]
    assert last(person, 2) == [
        ("artist.offered", None, f"offer {number}: all 3 artists"),
        ("artist.unassigned", heir.id, f"all 3 artists, to account {heir.id}"),
    ]
    again = await heir.browser.post(f"{offer}/accept", {"password": PASSWORD})  # in another form
    assert (again.status, "This offer is not open" in text(again)) == (404, True)
    gone = await person.browser.post(DELETE, {"password": PASSWORD})
    assert (gone.status, gone.headers["Location"]) == (303, "/")
    assert managers(heir, ids) == [heir.id] * 3


@on_shared_loop
async def test_the_page_answers_the_same_whoever_has_the_e_mail(person: Person) -> None:
    managing(person, "Trio", "Duo")
    join(person, "heir")
    without = join(person, "without", api_access=False)
    emails = [f"{name}{person.id}@label.test" for name in ("heir", "without", "nobody")]
    shown = set()
    for email in emails:
        sent = await person.browser.post(HAND_OVER, {"email": email})
        assert (sent.status, sent.headers["Location"]) == (303, DELETE)
        page = text(await person.browser.get(DELETE))
        assert email in page
        number = open_offers(person)[0].id
        shown.add(
            re.sub(r"[0-9a-f]{32,}", "", re.sub(rf"(offers?[ /]){number}\b", r"\1N", page.replace(email, "EMAIL")))
        )
        await person.browser.post(f"/settings/offers/{number}/take-back")
    assert len(shown) == 1
    reasons = [(event.kind, event.actor_id) for event in person.events()[-6:]]
    assert reasons == [(kind, None) for _ in emails for kind in ("artist.offered", "artist.offer_withdrawn")]
    await person.browser.post(HAND_OVER, {"email": without.email})
    assert "offers you" not in text(await without.browser.get("/settings"))
    number = open_offers(person)[0].id
    assert (await without.browser.get(f"/settings/offers/{number}")).status == 404
    without.do(lambda user: api_access.grant(user, now=2))
    assert "offers you everything they manage, now 2 artists" in text(await without.browser.get("/settings"))


@on_shared_loop
async def test_one_artist_is_handed_over_from_its_page_and_ticked_ones_from_the_settings(person: Person) -> None:
    ids = managing(person, "Trio", "Duo", "Solo")
    heir = join(person, "heir")
    page = f"/insights/artist/{ids[1]}"
    assert f'href="{page}/hand-over">Hand over</a>' in text(await person.browser.get(page))
    own = await person.browser.post(f"{page}/hand-over", {"email": person.email})
    assert (own.status, "This is your own account. Name another one." in text(own)) == (422, True)
    sent = await person.browser.post(f"{page}/hand-over", {"email": heir.email})
    assert (sent.status, sent.headers["Location"]) == (303, "/settings#offers")
    assert "1 artist: <bdi>Duo</bdi>" in text(await person.browser.get("/settings"))
    offered = [text(await person.browser.get(f"/insights/artist/{each}/hand-over")) for each in ids]
    assert [f"To {heir.email}" in each for each in offered] == [False, True, False]
    for fields, error in (
        ({"which": "some"}, "Tick at least one artist below."),
        ({"which": "all", f"artist.{ids[0]}": "on"}, "You ticked artists below: choose these, or untick them."),
    ):
        refused = await person.browser.post(HAND_OVER, {"email": heir.email, **fields})
        assert (refused.status, error in text(refused), heir.email in text(refused)) == (422, True, True)
    assert f'name="artist.{ids[0]}" checked>' in text(refused)
    ticked = {f"artist.{number}": "on" for number in (ids[0], ids[2])}
    assert (await person.browser.post(HAND_OVER, {"email": heir.email, "which": "some", **ticked})).status == 303
    foreign = await person.browser.post(HAND_OVER, {"email": heir.email, "which": "some", "artist.99999": "on"})
    assert foreign.status == 403
    some, one = open_offers(person)
    assert (some.names, one.names) == (["Trio", "Solo"], ["Duo"])
    back = await heir.browser.post(f"/settings/offers/{some.id}/take-back")
    assert back.status == 404  # only its sender takes it back, only its recipient accepts it
    for act in ("accept", "refuse"):
        sent = await person.browser.post(f"/settings/offers/{some.id}/{act}", {"password": PASSWORD})
        assert sent.status in {403, 404}
    assert (await heir.browser.post(f"/settings/offers/{some.id}/refuse")).headers["Location"] == "/settings"
    heir_name = heir.do(lambda user: user.display_name)
    shown = text(await person.browser.get("/insights"))
    assert f"<strong>{heir_name}</strong> (account {heir.id}) refused offer {some.id}: 2 artists" in shown
    await heir.browser.post(f"/settings/offers/{one.id}/accept", {"password": PASSWORD})
    assert managers(person, ids) == [person.id, heir.id, person.id]
    shown = text(await person.browser.get("/insights"))
    assert f"(account {heir.id}) moved artist {ids[1]} (Duo), to account {heir.id}" in shown


@on_shared_loop
async def test_an_offer_of_artists_that_moved_meanwhile_says_what_is_left_out(person: Person) -> None:
    ids = managing(person, "Trio", "Duo", "Solo")
    heir, other = join(person, "heir"), join(person, "other")
    ticked = {f"artist.{number}": "on" for number in ids}
    await person.browser.post(HAND_OVER, {"email": heir.email, "which": "some", **ticked})
    offer = f"/settings/offers/{open_offers(person)[0].id}"
    other.do(lambda user: assignments.assign(ids[0], user, now=person.shared.clock.now()))
    shown = text(await heir.browser.get(offer))
    assert "offers you 2 artists" in shown
    assert "1 artist of the offer is not managed by" in shown
    name = person.do(lambda user: user.display_name)
    taken = await heir.browser.post(f"{offer}/accept", {"password": PASSWORD})
    assert taken.status == 303
    assert f"You manage 2 artists of \u2068{name}\u2069 from now on." in text(await heir.browser.get("/insights"))
    assert managers(person, ids) == [other.id, heir.id, heir.id]


@on_shared_loop
async def test_the_account_is_deleted_with_its_artists_once_its_e_mail_is_typed(person: Person) -> None:
    (mine, _) = managing(person, "Trio", "Duo")
    other = join(person, "other")
    (theirs,) = managing(other, "Guest")

    def fill(_: User) -> list[int]:
        album = Album.create(name="Suite", created_at=1).id
        AlbumArtist.create(album=album, artist=mine, position=0)
        made = [Track.create(name=f"Air {number}", duration=1, album=album, created_at=1).id for number in range(4)]
        for track in made:
            TrackArtist.create(track=track, artist=mine, position=0)
        TrackArtist.create(track=made[0], artist=theirs, position=1)
        return made

    made = person.do(fill)
    shown = text(await person.browser.get(DELETE))
    for goes in ("2 artists", "1 album", "3 tracks"):
        assert f"<li>{goes}</li>" in shown
    assert "What also belongs to another’s artist stays with that one: 1 track." in shown
    sent = {"password": PASSWORD, "own_email": other.email}
    refused = await person.browser.post(DELETE, sent)
    assert (refused.status, "This is not the e-mail of your account." in text(refused)) == (422, True)
    refused = await person.browser.post(DELETE, {"password": "a wrong one", "own_email": person.email})
    assert (refused.status, "The password is wrong." in text(refused)) == (422, True)
    gone = await person.browser.post(DELETE, {"password": PASSWORD, "own_email": person.email.upper()})
    assert (gone.status, gone.headers["Location"]) == (303, "/")
    left = other.do(lambda _: [row.id for row in Track.select().where(Track.id.in_(made))])
    assert left == made[:1]
    reason = "2 artists, 1 album, 3 tracks, 1 session"
    assert [(event.kind, event.reason) for event in person.events()][-1] == ("account.deleted", reason)


@on_shared_loop
async def test_an_administrator_is_asked_and_hands_over_or_deletes(person: Person) -> None:
    ids = managing(person, "Trio", "Duo")
    admin, heir = join(person, "admin", admin=True), join(person, "heir")
    await person.browser.post(f"{DELETE}/ask", {"note": "To <my> sister"})
    again = await person.browser.post(f"{DELETE}/ask", {"note": "Please"})
    assert (again.status, "You have already asked." in text(again)) == (409, True)
    assert "You have asked. An administrator reads it" in text(await person.browser.get(DELETE))
    shown = text(await admin.browser.get("/admin"))
    assert "which manages 2 artists: <bdi>Trio, Duo</bdi>." in shown
    assert "To <my> sister" in shown
    number = open_offers(person)[0].id
    assigned = await admin.browser.post(f"/admin/accounts/{person.id}/assign-artists", {"email": heir.email})
    assert assigned.status == 303
    assert "which manages 0 artists" in text(await admin.browser.get("/admin"))
    assert (await admin.browser.post(f"/admin/leaving/{number}/dismiss")).headers["Location"] == "/admin"
    assert "data-leaving" not in text(await admin.browser.get("/admin"))
    assert managers(person, ids) == [heir.id] * 2
    page = f"/admin/accounts/{heir.id}/delete"
    assert "Delete the artists, too: 2 artists, with 0 plays" in text(await admin.browser.get(page))
    both = await admin.browser.post(page, {"artists_to": person.email, "with_artists": "on"})
    assert (both.status, "not both" in text(both)) == (422, True)
    neither = await admin.browser.post(page)
    assert (neither.status, f"{heir.email} manages Trio, Duo." in text(neither)) == (409, True)
    assert (await admin.browser.post(page, {"with_artists": "on"})).headers["Location"] == "/admin/accounts"
    assert person.do(lambda _: Artist.select().where(Artist.id.in_(ids)).count()) == 0


@on_shared_loop
async def test_an_answer_to_an_offer_that_is_sent_twice_is_told_as_done(person: Person) -> None:
    managing(person, "Trio", "Duo")
    admin, heir = join(person, "admin", admin=True), join(person, "heir")
    for who, act, notice in (
        (heir, "refuse", "The offer is refused."),
        (person, "take-back", "The offer is taken back."),
        (admin, "dismiss", f"The request by {person.email} is ended."),
        (heir, "accept", "You manage 2 artists of"),
    ):
        path, fields = (f"{DELETE}/ask", {}) if act == "dismiss" else (HAND_OVER, {"email": heir.email})
        assert (await person.browser.post(path, fields)).status == 303
        path = f"{'/admin/leaving' if act == 'dismiss' else '/settings/offers'}/{open_offers(person)[0].id}/{act}"
        sent = {"password": PASSWORD, "form_token": await who.browser.form_token()}
        answers = [await who.browser.post(path, sent) for _ in range(2)]
        assert [each.status for each in answers] == [303, 303]
        assert notice in text(await who.browser.get(answers[1].headers["Location"]))


@on_shared_loop
async def test_no_form_is_accepted_from_another_site_or_without_its_token(person: Person) -> None:
    (artist,) = managing(person, "Trio")
    heir = join(person, "heir")
    await person.browser.post(HAND_OVER, {"email": heir.email})
    offer = f"/settings/offers/{open_offers(person)[0].id}"
    for browser, path in (
        (person.browser, HAND_OVER),
        (person.browser, f"{DELETE}/ask"),
        (person.browser, DELETE),
        (person.browser, f"/insights/artist/{artist}/hand-over"),
        (person.browser, f"{offer}/take-back"),
        (heir.browser, f"{offer}/accept"),
        (heir.browser, f"{offer}/refuse"),
    ):
        fields = {"email": heir.email, "password": PASSWORD, "own_email": person.email}
        assert (await browser.post(path, {**fields, "form_token": "0" * 32})).status == 403
        assert (await browser.post(path, fields, Origin="https://elsewhere.test")).status == 403
    assert managers(person, [artist]) == [person.id]
    assert len(open_offers(person)) == 1


@on_shared_loop
async def test_an_expired_offer_and_one_without_api_access_are_not_accepted(person: Person) -> None:
    (artist,) = managing(person, "Trio")
    heir = join(person, "heir")
    await person.browser.post(HAND_OVER, {"email": heir.email})
    offer = f"/settings/offers/{open_offers(person)[0].id}"
    heir.do(lambda user: api_access.revoke(user, now=2))
    assert (await heir.browser.post(f"{offer}/accept", {"password": PASSWORD})).status == 403
    heir.do(lambda user: api_access.grant(user, now=3))
    person.do(lambda _: ArtistOffer.update(expires_at=ArtistOffer.expires_at - 14 * DAY).execute())
    ended = await heir.browser.post(f"{offer}/accept", {"password": PASSWORD})
    assert (ended.status, "This offer is not open" in text(ended)) == (404, True)
    assert "offers you" not in text(await heir.browser.get("/settings"))
    assert open_offers(person) == []
    assert managers(person, [artist]) == [person.id]


@on_shared_loop
async def test_more_tracks_than_a_page_deletes_are_left_to_an_administrator(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    (artist,) = managing(person, "Trio")
    admin = join(person, "admin", admin=True)
    monkeypatch.setattr(catalogs, "MOST_TRACKS", 1)

    def fill(_: User) -> None:
        for number in range(2):
            track = Track.create(name=f"Air {number}", duration=1, created_at=1).id
            TrackArtist.create(track=track, artist=artist, position=0)

    person.do(fill)
    shown = text(await person.browser.get(DELETE))
    assert "An administrator deletes a catalog of this size: ask below." in shown
    assert 'name="own_email"' not in shown
    sent = {"password": PASSWORD, "own_email": person.email}
    refused = await person.browser.post(DELETE, sent)
    assert refused.status == 409
    page = f"/admin/accounts/{person.id}/delete"
    refused = await admin.browser.post(page, {"with_artists": "on"})
    command = f"musicsvc user delete {person.email} --with-artists"
    assert (refused.status, command in text(refused)) == (409, True)
    assert managers(person, [artist]) == [person.id]


@on_shared_loop
async def test_who_has_a_revoked_token_reads_where_to_object(developer: Person) -> None:
    """It stands here because this server has the address."""
    token, _ = developer.token("laptop")
    page = text(await developer.browser.get("/settings/developers"))
    assert "mailto:help@label.test" not in page
    developer.do(lambda _: tokens.revoke(token.id, "seen elsewhere", now=1))
    page = text(await developer.browser.get("/settings/developers"))
    assert 'revoked by mistake, write to <a href="mailto:help@label.test">help@label.test</a>' in page
