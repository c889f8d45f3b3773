"""People download their own data and delete their own account, with their password."""

import json

import pytest

from musicsvc.clock import DAY
from musicsvc.store.accounts import follows, tokens, users
from musicsvc.store.models import Artist, Playlist, PlaylistInvite, PlaylistTrack, Track, TrackArtist, User
from musicsvc.store.plays import ingest
from musicsvc.store.plays.ingest import ReportedPlay
from tests.rights.world import PASSWORD
from tests.support.page_client import text
from tests.support.shared_server import on_shared_loop
from tests.support.signed_in import Person

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database
WRONG = "The password is wrong."


def fill(person: Person) -> str:
    """Give the account a token, playlists, a follow and own plays; return the token's value."""
    now = person.shared.clock.now()
    value = person.token()[1]

    def unit(user: User) -> None:
        for name in ("Rags", "Waltzes"):
            Playlist.create(owner=user.id, name=name, created_at=now)
        actor = tokens.identify(tokens.digest(value))
        assert actor is not None
        other = users.create(f"other{person.id}@label.test", now=now).id
        follows.follow(other, now=now, actor=actor)
        track = Track.create(name="Rag", duration=1, isrc="GBAYE6800011", created_at=1).id
        for place, name in enumerate(("Bob", "Ann")):
            artist = Artist.create(name=name, created_at=1).id
            TrackArtist.create(track=track, artist=artist, position=1 - place)
        ingest.report([ReportedPlay(track, now - back) for back in (0, 10**9)], now=now, actor=actor)

    person.do(unit)
    return value


@on_shared_loop
async def test_everybody_downloads_their_own_data_with_their_password(developer: Person) -> None:
    value = fill(developer)
    assert await developer.status(value) == 200
    refused = await developer.browser.post("/settings/data", {"password": "a wrong one"})
    assert (refused.status, WRONG in text(refused)) == (422, True)
    answer = await developer.browser.post("/settings/data", {"password": PASSWORD})
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json")
    assert answer.headers["Content-Disposition"] == f'attachment; filename="account-{developer.id}.json"'
    found = json.loads(answer.body)
    assert found["account"]["email"] == developer.email
    assert [row["name"] for row in found["playlists"]] == ["Rags", "Waltzes"]
    named = {"track": "Rag", "artists": "Ann; Bob", "isrc": "GBAYE6800011"}
    assert [row | named for row in found["own_plays"]] == found["own_plays"] != []
    assert [row["display_name"] for row in found["following"]] == [f"other{developer.id}"]
    assert [row["name"] for row in found["tokens"]] == ["laptop"]
    secret = answer.body.count(value.encode()) + answer.body.count(developer.browser.cookies["musicsvc"].encode())
    assert secret == 0


@on_shared_loop
async def test_playlists_of_others_that_the_account_may_not_see_have_no_name_in_its_data(developer: Person) -> None:
    now = developer.shared.clock.now()

    def unit(user: User) -> None:
        owner = users.create(f"owner{user.id}@label.test", now=now).id
        track = Track.create(name="Rag", duration=1, created_at=1).id
        for name, days, state in (
            ("left", 0, None), ("declined", 1, "declined"), ("expired", 0, "pending"),
            ("invited", 1, "pending"), ("shared", 0, "accepted"), ("public", 0, "declined"),
        ):  # fmt: skip
            row = {"owner": owner, "public": name == "public", "collaborative": True, "created_at": now}
            made = Playlist.create(name=name, **row).id
            PlaylistTrack.create(playlist=made, track=track, added_by=user.id, added_at=now)
            if state is not None:
                PlaylistInvite.create(
                    playlist=made, user=user.id, state=state, created_at=1, expires_at=now + days * DAY
                )

    developer.do(unit)
    found = json.loads((await developer.browser.post("/settings/data", {"password": PASSWORD})).body)
    assert [row["playlist"] for row in found["playlist_tracks"]] == [None, None, None, None, "shared", "public"]
    assert [row["playlist"] for row in found["invitations"]] == [None, None, "invited", "shared", "public"]


@on_shared_loop
async def test_everybody_deletes_their_own_account_with_their_password(developer: Person) -> None:
    value = fill(developer)
    shown = text(await developer.browser.get("/settings/delete"))
    assert "This page deletes your account" in shown
    for goes in ("2 playlists", "1 followed account", "1 token", "1 session"):
        assert f"<li>{goes}</li>" in shown
    refused = await developer.browser.post("/settings/delete", {"password": "a wrong one"})
    assert (refused.status, WRONG in text(refused)) == (422, True)
    assert await developer.status(value) == 200
    gone = await developer.browser.post("/settings/delete", {"password": PASSWORD})
    assert (gone.status, gone.headers["Location"]) == (303, "/")
    assert "Your account is deleted." in text(await developer.browser.get("/"))
    assert (await developer.browser.get("/settings")).headers["Location"] == "/sign-in?next=/settings"
    assert await developer.status(value) == 401
    event = developer.events()[-1]
    assert (event.kind, event.actor, event.reason) == (
        "account.deleted",
        "page",
        "2 playlists, 1 followed account, 1 token, 1 session",
    )


@on_shared_loop
async def test_a_manager_of_artists_does_not_delete_them_by_the_password_alone(person: Person) -> None:
    person.do(lambda user: [Artist.create(name=name, manager=user.id, created_at=1) for name in ("Trio", "Duo")])
    obstacle = f"{person.email} manages Trio, Duo. Hand these artists over first, or delete them with the account."
    refused = await person.browser.post("/settings/delete", {"password": PASSWORD})
    assert (refused.status, obstacle in text(refused)) == (409, True)
    assert person.do(lambda user: user.email) == person.email
