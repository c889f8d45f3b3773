"""Offers of artists: nothing moves before the recipient accepts, and nobody learns which accounts there are."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import pytest

from musicsvc.clock import DAY
from musicsvc.errors import Conflict, Failure, Forbidden, Invalid, NotFound
from musicsvc.store.accounts import users
from musicsvc.store.catalog import artists
from musicsvc.store.editing import assignments, offers
from musicsvc.store.editing.offers import Offer
from musicsvc.store.engine.store import Store
from musicsvc.store.models import Artist, ArtistOffer, ArtistOfferArtist, User
from musicsvc.store.people import deletion
from musicsvc.store.security import security_events
from musicsvc.store.security.sessions import SessionIdentity
from tests.conftest import NOW
from tests.support.undoing import require_sound

END = NOW + 14 * DAY
IDENTITY = SessionIdentity(1, 1, 0, "", "", None, admin=False, api_access=True, reports_plays=False)


class World(NamedTuple):
    """A sender with three artists, and two accounts that may get them."""

    store: Store
    sender: User
    heir: User
    other: User
    ids: list[int]

    def do(self, unit: Callable[[], Any]) -> Any:
        return self.store.write(unit).result()

    def offer(self, *chosen: int, to: User | None = None, now: int = NOW) -> Offer:
        """Offer the artists with these numbers, or all."""
        email, some = (to or self.heir).email, [self.ids[each] for each in chosen]
        self.do(partial(offers.create, self.sender, email, some, now=now))
        found: Offer = self.do(lambda: offers.sent(self.sender.id, now=now)[0])
        return found

    def received(self, user: User | None = None, now: int = NOW) -> list[int]:
        return [each.id for each in self.do(lambda: [*offers.received((user or self.heir).id, now=now)])]

    def managers(self) -> list[int | None]:
        found: list[int | None] = self.do(lambda: [artists.get(each).manager_id for each in self.ids])
        return found

    def accept(self, offer: Offer, user: User | None = None, now: int = NOW) -> int:
        """Accept an offer as the page does: it is looked up again."""
        user = user or self.heir
        actor = IDENTITY._replace(user_id=user.id)

        def unit() -> int:
            return offers.accept(offers.get_received(offer.id, actor=actor, now=now), user, now=now)

        moved: int = self.do(unit)
        return moved

    def kinds(self, user: User) -> list[str]:
        found = security_events.Filter(account_id=user.id)
        return self.do(lambda: [each.kind for each in security_events.find(found, limit=9)][1:])  # type: ignore[no-any-return]


@pytest.fixture
def world(store: Store) -> World:
    def unit() -> World:
        sender, heir, other = (
            users.create(f"{name}@label.test", now=NOW, api_access=name != "sender")
            for name in ("sender", "heir", "other")
        )
        names = ("Ann", "Bob", "Cleo")
        ids = [Artist.create(name=name, manager=sender.id, created_at=NOW).id for name in names]
        return World(store, sender, heir, other, ids)

    return store.write(unit).result()


def test_chosen_artists_move_when_they_are_accepted_and_only_once(world: World) -> None:
    offer = world.offer(0, 2)
    assert (offer.names, offer.total, offer.chosen, offer.expires_at) == (["Ann", "Cleo"], 2, 2, END)
    assert (world.received(), world.received(world.other)) == ([offer.id], [])
    assert world.accept(offer) == 2
    assert world.managers() == [world.heir.id, world.sender.id, world.heir.id]
    with pytest.raises(NotFound, match="not open"):
        world.accept(offer)
    with pytest.raises(NotFound, match="not open"):
        world.do(partial(offers.accept, offer, world.heir, now=NOW))  # the same moment, in another request
    require_sound(world.store)


def test_an_offer_ends_after_14_days_when_taken_back_and_when_refused(world: World) -> None:
    expired, back, refused = world.offer(), world.offer(0), world.offer(1)
    assert world.received(now=END - 1) == [refused.id, back.id, expired.id]
    assert world.received(now=END) == []
    with pytest.raises(NotFound, match="not open"):
        world.accept(expired, now=END)
    world.do(partial(offers.take_back, back, now=NOW))
    world.do(partial(offers.refuse, refused, now=NOW))
    assert world.received() == [expired.id]
    for end in (offers.take_back, offers.refuse):
        with pytest.raises(NotFound, match="not open"):
            world.do(partial(end, back, now=NOW))
    kinds = ["artist.offered"] * 3 + ["artist.offer_withdrawn", "artist.offer_refused"]
    assert world.kinds(world.sender) == kinds
    assert world.kinds(world.heir)[1:] == kinds
    world.offer(2, now=END)
    assert world.do(ArtistOffer.select().count) == 1  # expired ones are gone
    assert world.do(ArtistOfferArtist.select().count) == 1
    assert world.managers() == [world.sender.id] * 3


def test_of_two_offers_of_one_artist_the_first_that_is_accepted_moves_it(world: World) -> None:
    first, second, whole = world.offer(0), world.offer(0, 1, to=world.other), world.offer(to=world.other)
    world.accept(first)
    (left, all_left) = world.do(lambda: [*offers.received(world.other.id, now=NOW)])[::-1]
    assert (left.id, left.names, left.total, left.chosen) == (second.id, ["Bob"], 1, 2)
    assert (all_left.id, all_left.names) == (whole.id, ["Bob", "Cleo"])
    assert world.accept(second, world.other) == 1
    assert world.managers() == [world.heir.id, world.other.id, world.sender.id]
    assert world.accept(whole, world.other) == 1
    assert world.managers() == [world.heir.id, world.other.id, world.other.id]


def test_an_artist_that_the_sender_has_lost_or_deleted_is_not_moved(world: World) -> None:
    offer = world.offer(0)
    world.do(partial(assignments.assign, world.ids[0], world.other, now=NOW))
    assert world.received() == []
    with pytest.raises(NotFound, match="not open"):
        world.accept(offer)
    with pytest.raises(Conflict, match="manages none"):
        world.do(partial(offers.accept, offer, world.heir, now=NOW))
    assert world.managers()[0] == world.other.id


def test_offers_end_with_the_sender_and_stay_without_the_recipient(world: World) -> None:
    world.offer(0)
    world.do(partial(deletion.delete, world.heir.id, now=NOW))
    (left,) = world.do(lambda: [*offers.sent(world.sender.id, now=NOW)])
    assert (left.recipient_id, left.email, left.names) == (None, "heir@label.test", ["Ann"])
    again = world.do(partial(users.create, "heir@label.test", api_access=True, now=NOW))
    assert world.received(again) == []  # another account, with the same e-mail
    world.offer(to=world.other)
    gone = world.do(partial(deletion.delete, world.sender.id, artists_to=world.other, now=NOW))
    assert gone == {"artist offer": 2}
    assert (world.received(world.other), world.do(ArtistOfferArtist.select().count)) == ([], 0)


def test_offers_of_a_suspended_account_wait(world: World) -> None:
    offer = world.offer()
    world.do(partial(users.suspend, world.sender, now=NOW))
    assert world.received() == []
    world.do(partial(users.reinstate, world.sender, now=NOW))
    assert world.received() == [offer.id]


def test_wrong_offers_are_refused_with_the_reason(world: World) -> None:
    foreign = world.do(lambda: Artist.create(name="Dan", manager=world.other.id, created_at=NOW).id)

    def create(sender: User, email: str, *chosen: int) -> None:
        world.do(partial(offers.create, sender, email, chosen, now=NOW))

    for failure, text, sender, email, chosen in (
        (Invalid, "own account", world.sender, "SENDER@LABEL.TEST", ()),
        (Invalid, "", world.sender, "no address", ()),
        (Forbidden, "do not manage all", world.sender, "heir@label.test", (world.ids[0], foreign)),
        (Conflict, "manage no artists", world.heir, "other@label.test", ()),
        (Conflict, "at most 100", world.sender, "heir@label.test", range(1, 102)),
    ):
        with pytest.raises(failure) as raised:
            create(sender, email, *chosen)
        assert text in str(getattr(raised.value, "errors", raised.value.message))
    assert world.do(ArtistOffer.select().count) == 0


def test_an_account_has_at_most_100_open_offers(world: World) -> None:
    row = {
        "user": world.sender.id,
        "recipient": world.heir.id,
        "email": "h@x.test",
        "created_at": NOW,
        "expires_at": END,
    }
    world.do(ArtistOffer.insert_many([row] * 100).execute)
    with pytest.raises(Conflict, match="100 open offers"):
        world.offer(1)
    assert len(world.received()) == 50
    oldest = world.do(lambda: offers.sent(world.sender.id, now=NOW)[-1])
    assert world.accept(oldest) == 3  # though it is not in the list


def test_the_administrators_are_asked_once_until_they_answer(world: World) -> None:
    world.do(partial(offers.ask, world.sender, "To my sister", now=NOW))
    (asked,) = world.do(lambda: [*offers.asked()])
    assert (asked.note, asked.total, asked.email, asked.expires_at) == ("To my sister", 3, None, None)
    with pytest.raises(Conflict, match="already asked"):
        world.do(partial(offers.ask, world.sender, None, now=NOW))
    with pytest.raises(Conflict, match="manage no artists"):
        world.do(partial(offers.ask, world.heir, None, now=NOW))
    world.offer(now=END * 2)  # it stays when others expire
    assert [each.id for each in world.do(lambda: [*offers.asked()])] == [asked.id]
    world.do(partial(offers.refuse, asked, now=END * 3, actor=security_events.Administrator(world.other.id)))
    assert world.do(lambda: [*offers.asked()]) == []
    assert world.kinds(world.sender)[-1] == "artist.offer_refused"


def test_all_moves_what_imports_find_and_some_does_not_move_to_oneself(world: World) -> None:
    with pytest.raises(Failure, match="Name two accounts"):
        world.do(partial(assignments.assign_all, world.sender, world.sender, now=NOW))
    assert world.do(partial(assignments.assign_all, world.sender, world.heir, only=[], now=NOW)) == 0
    assert world.kinds(world.heir) == ["access.granted"]


def test_an_offer_of_the_same_artists_to_the_same_e_mail_is_made_once(world: World) -> None:
    first, all_of_them = world.offer(0, 2), world.offer()
    for chosen in ((0, 2), ()):
        with pytest.raises(Conflict, match="already"):
            world.offer(*chosen)
    with pytest.raises(Conflict, match="already"):
        world.do(lambda: offers.create(world.sender, world.heir.email.upper(), [world.ids[0], world.ids[2]], now=NOW))
    others = world.offer(0), world.offer(0, 2, to=world.other)
    assert world.received() == [others[0].id, all_of_them.id, first.id]
    world.do(lambda: offers.take_back(first, now=NOW))
    assert world.offer(0, 2).id in world.received()
