"""Artists are handed over or deleted with the account, on pages, without a terminal."""

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from musicsvc.config import Access, Settings
from musicsvc.store.accounts import api_access
from musicsvc.store.catalog import artists
from musicsvc.store.editing import offers
from musicsvc.store.editing.offers import Offer
from musicsvc.store.models import Artist
from tests.rights.world import PASSWORD
from tests.support import databases
from tests.support.page_client import PageClient, add_account, add_session, text
from tests.support.shared_server import Shared, on_shared_loop, shared_server
from tests.support.signed_in import Person

pytestmark = pytest.mark.only_on("sqlite")  # the store's rules are tested on both in tests/store/editing
HAND_OVER, DELETE = "/settings/delete/hand-over", "/settings/delete"
OFFERED = "waits for 14 days. If an account with API access has this e-mail, it sees the offer."


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
    assert "All 3 artists: Trio, Duo, Solo" in shown
    assert managers(person, ids) == [person.id] * 3
    number = open_offers(person)[0].id
    name = person.do(lambda user: user.display_name)
    for path in ("/", "/settings", "/insights"):
        shown = text(await heir.browser.get(path))
        assert f"<strong>{name}</strong> offers you 3 artists: Trio, Duo, Solo." in shown
        assert f'href="/settings/offers/{number}"' in shown
        assert person.email not in shown
    offer = f"/settings/offers/{number}"
    assert f"{name} offers you 3 artists" in text(await heir.browser.get(offer))
    refused = await heir.browser.post(f"{offer}/accept", {"password": "a wrong one"})
    assert (refused.status, "This is not your current password." in text(refused)) == (422, True)
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
    again = await heir.browser.post(f"{offer}/accept", {"password": PASSWORD})
    assert (again.status, "This offer has ended." in text(again)) == (404, True)
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
    assert "offers you 2 artists" in text(await without.browser.get("/settings"))
