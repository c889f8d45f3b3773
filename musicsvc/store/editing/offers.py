"""Offers to manage artists: to another account, or to the administrators. An offer moves nothing before it is accepted.

An offer to an e-mail waits 14 days, whether an account has it or not, so that nobody learns which accounts there are.
"""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from musicsvc.clock import DAY
from musicsvc.errors import Conflict, Forbidden, Invalid, NotFound, first, require_valid
from musicsvc.store.accounts import email_addresses, users
from musicsvc.store.accounts.managing import managed_by
from musicsvc.store.editing import assignments
from musicsvc.store.engine.sql import lock_row
from musicsvc.store.models import Artist, ArtistOffer, ArtistOfferArtist, User
from musicsvc.store.plays import counting
from musicsvc.store.security import security_events
from musicsvc.store.security.security_events import Actor, Kind
from musicsvc.store.security.sessions import SessionIdentity
from musicsvc.wording import quantity

LIFETIME = 14 * DAY
MOST = 100  # open offers of an account
MOST_CHOSEN = 100  # artists of an offer that is not of all
NAMED = 10
SHOWN = 50  # offers in a list
NOTE_LENGTH = 1_000
GONE = (
    "This offer is not open: it was accepted, refused or taken back, is older than 14 days, or its artists are not the"
    " sender's any more."
)
NOBODYS = "You manage no artists."


class Offer(NamedTuple):
    """An open offer. `email`: of the other account; None for a request to the administrators, which has a `note`.

    `total`: the number of artists that the sender still manages, with the first `names`. `chosen`: how many artists the
    sender chose, 0 for all.
    """

    id: int
    sender: User
    recipient_id: int | None
    email: str | None
    note: str | None
    created_at: int
    expires_at: int | None
    names: Sequence[str]
    total: int
    chosen: int

    @property
    def about(self) -> str:
        """The artists, for a security event."""
        return f"offer {self.id}: {'' if self.chosen else 'all '}{quantity(self.chosen or self.total, 'artist')}"


def create(sender: User, email: str, chosen: Collection[int], *, now: int) -> None:
    """Offer the chosen artists, or all if none is chosen, to the account with this e-mail.

    Raises Invalid for a wrong e-mail or the sender's own, Forbidden for artists that the sender does not manage,
    Conflict for too many artists or offers, or for an open offer that is the same.
    """
    require_valid({"email": email_addresses.problem(email)})
    if email_addresses.normalize(email) == sender.email_key:
        raise Invalid({"email": "This is your own account. Name another one."})
    if len(chosen) > MOST_CHOSEN:
        raise Conflict(f"An offer has at most {MOST_CHOSEN} chosen artists, or all.")
    lock_row(User, sender.id)
    if Artist.select().where(managed_by(sender.id), Artist.id.in_(chosen)).count() < len(chosen):
        raise Forbidden("You do not manage all of these artists.")
    ArtistOffer.delete().where(ArtistOffer.expires_at <= now).execute()
    if any(_is_alike(offer, email, chosen) for offer in ArtistOffer.select().where(ArtistOffer.user == sender.id)):
        raise Conflict("You have offered these artists to this e-mail already. The offer is open.")
    if ArtistOffer.select().where(ArtistOffer.user == sender.id).count() >= MOST:
        raise Conflict(f"You have {MOST} open offers, the most that an account can have. Take one back first.")
    recipient = users.find_by_email(email)
    _insert(sender, chosen, now, email=email.strip(), recipient=recipient and recipient.id, expires_at=now + LIFETIME)


def _is_alike(offer: ArtistOffer, email: str, chosen: Collection[int]) -> bool:
    if offer.email is None or email_addresses.normalize(offer.email) != email_addresses.normalize(email):
        return False
    return _chosen(offer.id) == set(chosen)


def _chosen(offer_id: int) -> set[int]:
    rows = ArtistOfferArtist.select(ArtistOfferArtist.artist).where(ArtistOfferArtist.artist_offer == offer_id)
    return {number for (number,) in rows.tuples().iterator()}


def ask(sender: User, note: str | None, *, now: int) -> None:
    """Ask the administrators to take all artists of an account. Raises Conflict if it has asked already."""
    lock_row(User, sender.id)
    if ArtistOffer.select().where(ArtistOffer.user == sender.id, ArtistOffer.email.is_null()).exists():
        raise Conflict("You have already asked. An administrator decides.")
    _insert(sender, (), now, note=note)


def _insert(sender: User, chosen: Collection[int], now: int, **columns: Any) -> None:
    if not Artist.select().where(managed_by(sender.id)).exists():
        raise Conflict(NOBODYS)
    number: int = ArtistOffer.insert(user=sender.id, created_at=now, **columns).execute()
    if chosen:
        ArtistOfferArtist.insert_many([{"artist_offer": number, "artist": each} for each in chosen]).execute()
    _log("artist.offered", first(_open(now, ArtistOffer.id == number), GONE), now=now)


def sent(user_id: int, *, now: int, artist: int | None = None) -> Sequence[Offer]:
    """Return the open offers of an account, newest first: all, or those that this artist is part of."""
    found = _open(now, ArtistOffer.user == user_id, limit=MOST + 1)
    return [each for each in found if artist is None or not each.chosen or artist in _chosen(each.id)]


def received(user_id: int, *, now: int, condition: Any = True) -> Sequence[Offer]:
    """Return the open offers to an account that has API access, newest first; not those of which no artist is left."""
    to_account = ArtistOffer.recipient.in_(User.select(User.id).where(User.id == user_id, User.api_access))
    return [offer for offer in _open(now, to_account & condition) if offer.total]


def asked() -> Sequence[Offer]:
    """Return the requests to the administrators, newest first."""
    return _open(0, ArtistOffer.email.is_null())


def get_received(offer_id: int, *, actor: SessionIdentity, now: int) -> Offer:
    """Return an open offer to the account. Raises NotFound."""
    return first(received(actor.user_id, now=now, condition=ArtistOffer.id == offer_id), GONE)


def get_sent(offer_id: int, *, actor: SessionIdentity, now: int) -> Offer:
    """Return an open offer of the account. Raises NotFound."""
    return first(_open(now, (ArtistOffer.user == actor.user_id) & (ArtistOffer.id == offer_id)), GONE)


def get_asked(offer_id: int) -> Offer:
    """Return a request to the administrators. Raises NotFound."""
    return first(_open(0, ArtistOffer.email.is_null() & (ArtistOffer.id == offer_id)), GONE)


def _open(now: int, condition: Any, *, limit: int = SHOWN) -> Sequence[Offer]:
    """Return open offers, newest first. Those of a suspended account wait until it is reinstated."""
    expires = ArtistOffer.expires_at
    query = (
        ArtistOffer.select(ArtistOffer, User)
        .join(User, on=(User.id == ArtistOffer.user), attr="sender")
        .where(condition)
    )
    query = query.where(expires.is_null() | (expires > now), User.suspended_at.is_null())
    return [_load(row) for row in query.order_by(ArtistOffer.id.desc()).limit(limit)]


def _load(row: Any) -> Offer:
    sender: User = row.sender
    chosen = _chosen(row.id)
    left = Artist.select(Artist.name).where(managed_by(sender.id))
    left = left.where(Artist.id.in_(chosen)) if chosen else left
    names = [name for (name,) in left.order_by(Artist.id).limit(NAMED).tuples().iterator()]
    fields = row.id, sender, row.recipient, row.email, row.note, row.created_at, row.expires_at
    return Offer(*fields, names, left.count(), len(chosen))


def accept(offer: Offer, user: User, *, now: int) -> int:
    """Make `user` the manager of the offered artists that the sender still manages. Return their number.

    Raises NotFound if the offer has ended meanwhile, Conflict if there is no such artist any more.
    """
    counting.lock()  # in the order in which a deletion of one of the accounts acquires its locks
    only = _chosen(offer.id) if offer.chosen else None
    _end(offer)
    moved = assignments.assign_all(offer.sender, user, only=only, now=now, actor="page", account=user.id)
    if not moved:
        raise Conflict(f"{offer.sender.display_name} manages none of these artists any more.")
    return moved


def refuse(offer: Offer, *, now: int, actor: Actor = "page") -> None:
    """End an offer for its recipient, or an administrator. Raises NotFound if it has ended meanwhile."""
    _end(offer)
    _log("artist.offer_refused", offer, now=now, actor=actor, by=offer.recipient_id)


def take_back(offer: Offer, *, now: int) -> None:
    """End an offer for its sender. Raises NotFound if it has ended meanwhile."""
    _end(offer)
    _log("artist.offer_withdrawn", offer, now=now)


def _end(offer: Offer) -> None:
    # Of two requests, only the one that deletes the row goes on.
    if not ArtistOffer.delete().where(ArtistOffer.id == offer.id).execute():
        raise NotFound(GONE)


def _log(kind: Kind, offer: Offer, *, now: int, actor: Actor = "page", by: int | None = None) -> None:
    """Log what became of an offer, for both accounts. What the sender may read does not say whether there is another.

    `by`: the account that acted, by default the sender.
    """
    by = by or offer.sender.id
    for account in (offer.sender.id, offer.recipient_id):
        if account is not None:
            other = None if account == by else by
            security_events.add(kind, account_id=account, reason=offer.about, now=now, actor=actor, actor_id=other)
