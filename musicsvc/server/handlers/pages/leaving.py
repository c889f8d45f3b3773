"""Leave the service: hand artists over, delete the account with or without artists, ask the administrators."""

from musicsvc.config import Settings
from musicsvc.errors import Conflict, Invalid
from musicsvc.server.schemas.pages.accounts import AskForm, DeleteForm, OfferForm, PasswordForm, read_chosen
from musicsvc.server.shapes.envelope import JSON
from musicsvc.server.shapes.pages import FormState, Redirect, SignedOut, View
from musicsvc.store.accounts import email_addresses, users
from musicsvc.store.accounts import sign_in as credentials
from musicsvc.store.accounts.sign_in import Credentials
from musicsvc.store.catalog import artists
from musicsvc.store.catalog.artists import ArtistRow
from musicsvc.store.editing import offers
from musicsvc.store.editing.offers import Offer
from musicsvc.store.engine.pagination import Page
from musicsvc.store.people import catalogs, deletion
from musicsvc.store.security.security_events import Administrator
from musicsvc.store.security.sessions import SessionIdentity
from musicsvc.wording import isolated, quantity

DELETE = "/settings/delete"
CHOICE = Page(1, offers.MOST_CHOSEN)
OFFERED = (
    "The offer to {} waits for 14 days. If an account with API access has this e-mail now, it sees the offer; one that"
    " registers later does not."
)


def show_deletion(caller: SessionIdentity, form: FormState, settings: Settings, now: int) -> View:
    """Show what goes with the account, and the ways to delete it, or why that is not possible."""
    user, obstacle = users.get(caller.user_id), None
    try:
        deletion.check(user, without_artists=True)
    except Conflict as conflict:
        obstacle = conflict.message
    found = artists.list_managed(user.id, CHOICE)
    values: JSON = {"belongings": deletion.count_belongings(user), "obstacle": obstacle, "total": found.total}
    if found.total:
        ticked = read_chosen(form.of(f"{DELETE}/hand-over").values)
        values |= {"artists": found.rows, "ticked": ticked, "catalog": catalogs.count(user.id)}
        values |= {"sent": offers.sent(user.id, now=now), "contact": settings.access.contact_email}
    return View("delete_account.html", values)


def delete(body: DeleteForm, verified: Credentials | None, now: int) -> SignedOut:
    """Delete the account and, if its e-mail was typed, its artists.

    Raises Invalid for another e-mail, Conflict for too many tracks.
    """
    user, typed = credentials.require(verified), body.own_email
    if typed is not None and email_addresses.normalize(typed) != user.email_key:
        raise Invalid({"own_email": "This is not the e-mail of your account."})
    if typed is not None and catalogs.count(user.id).large:
        raise Conflict(f"You have more than {catalogs.MOST_TRACKS:,} tracks. Ask an administrator to delete them.")
    deletion.delete(user.id, with_artists=typed is not None, now=now, actor="page")
    return SignedOut("/", "Your account is deleted.")


def offer(body: OfferForm, caller: SessionIdentity, now: int) -> Redirect:
    """Offer all artists of the account, or those that are ticked, to another account."""
    ticked = read_chosen(body.model_extra or {})
    if ticked and body.which == "all":
        raise Invalid({"which": "You ticked artists below: choose these, or untick them."})
    if not ticked and body.which == "some":
        raise Invalid({"which": "Tick at least one artist below."})
    offers.create(users.get(caller.user_id), body.email, ticked, now=now)
    return Redirect(DELETE, OFFERED.format(body.email))


def ask(body: AskForm, caller: SessionIdentity, now: int) -> Redirect:
    """Ask the administrators to take all artists of the account."""
    offers.ask(users.get(caller.user_id), body.note, now=now)
    return Redirect(DELETE, "An administrator reads your request, and hands your artists over or deletes them.")


def show_hand_over(subject: ArtistRow, caller: SessionIdentity, now: int) -> View:
    """Show the form to offer one artist to another account, and the open offers of it."""
    sent = offers.sent(caller.user_id, now=now, artist=subject.id)
    return View("hand_over.html", {"artist": subject, "sent": sent})


def hand_over(subject: ArtistRow, body: OfferForm, caller: SessionIdentity, now: int) -> Redirect:
    """Offer one artist to another account."""
    offers.create(users.get(caller.user_id), body.email, {subject.id}, now=now)
    return Redirect("/settings#offers", OFFERED.format(body.email))


def show_offer(subject: Offer) -> View:
    """Show an offer to the account, with the forms to accept and to refuse it."""
    return View("offer.html", {"offer": subject})


def accept(
    subject: Offer,
    body: PasswordForm,  # noqa: ARG001 - checked as `verified`
    verified: Credentials | None,
    now: int,
) -> Redirect:
    """Manage the offered artists from now on. Raises Invalid if the password is wrong."""
    moved = offers.accept(subject, credentials.require(verified), now=now)
    former = isolated(subject.sender.display_name)
    return Redirect("/insights", f"You manage {quantity(moved, 'artist')} of {former} from now on.")


def refuse(subject: Offer, now: int) -> Redirect:
    """Refuse an offer."""
    offers.refuse(subject, now=now)
    return Redirect("/settings", "The offer is refused.")


def take_back(subject: Offer, now: int) -> Redirect:
    """Take an offer, or a request to the administrators, back."""
    offers.take_back(subject, now=now)
    return Redirect("/settings#offers", "The offer is taken back.")


def dismiss(subject: Offer, caller: SessionIdentity, now: int) -> Redirect:
    """End a request to the administrators, who have done what they could."""
    offers.refuse(subject, now=now, actor=Administrator(caller.user_id))
    return Redirect("/admin", f"The request by {subject.sender.email} is ended.")
