"""Receive listens from players, as ListenBrainz does (docs/players.md), and show those that wait for their track."""

from collections.abc import Sequence
from functools import partial

from musicsvc.clock import SECOND
from musicsvc.config import Settings
from musicsvc.errors import Malformed
from musicsvc.server.responses.errors import FOR_PLAYERS
from musicsvc.server.schemas.fields import Pages
from musicsvc.server.schemas.listens import ListenIn, ListensIn, NamedIn
from musicsvc.server.shapes.envelope import JSON, ok, paged, picked, success
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.engine.store import Store
from musicsvc.store.listens import matching, missing, pending, receiving
from musicsvc.store.listens.matching import Listen
from musicsvc.store.listens.pending import Entry

WITHOUT = "Send a listening token, with the header Authorization: Token VALUE."
Matched = tuple[Sequence[Listen], Sequence[int | None]]  # listens, and their tracks


def validate(caller: Identity | None, credentials: str | None) -> JSON:
    """Return whether the listening token is valid, and the name of its account. Raises Malformed without a token."""
    if credentials is None:
        raise Malformed(WITHOUT)
    if caller is None:
        return {"code": 200, "message": f"Token invalid. {FOR_PLAYERS}", "valid": False}
    return {"code": 200, "message": "Token valid.", "valid": True, "user_name": caller.display_name}


def match(body: ListensIn, store: Store) -> Matched:
    """Return the listens of a submission with the tracks that they name."""
    if body.listen_type == "playing_now":
        return [], []
    listens = [_listen(each) for each in body.payload]
    return listens, store.read(partial(matching.find, listens)).result()


def submit(caller: Identity, prepared: Matched, settings: Settings, now: int) -> JSON:
    """Store listens as plays of the caller. What plays now is checked, and stored nowhere."""
    own = settings.plays
    if prepared[0]:
        receiving.receive(*prepared, now=now, actor=caller, accepted=own.own, daily=own.own_daily)
    return {"status": "ok"}


def index(query: Pages, caller: Identity) -> JSON:
    """List the caller's listens that match no track (yet), by artist and title, the most heard first."""
    return paged(pending.list_own(query.to_page(), actor=caller), _entry)


def dismiss(subject: int, caller: Identity) -> JSON:
    """Delete the caller's pending listens of one artist and title."""
    pending.dismiss(subject, actor=caller)
    return ok()


def dismiss_all(caller: Identity) -> JSON:
    """Delete all pending listens of the caller. Safe to repeat."""
    pending.dismiss(None, actor=caller)
    return ok()


def name(subject: int, body: NamedIn, caller: Identity, now: int) -> JSON:
    """Count the caller's pending listens of one artist and title as plays of a track."""
    pending.name(subject, body.track_id, actor=caller, now=now)
    return ok()


def list_missing(caller: Identity) -> JSON:
    """Read what people hear of the caller's artists that matches no track, summed over at least five accounts."""
    found = missing.of_manager(caller.user_id)
    rows = [{"artist": r.artist, "track": r.title, "release": r.release, "listens": r.listens} for r in found]
    return success({"tracks": rows})


def _entry(entry: Entry) -> JSON:
    named = {"id": entry.id, "artist": entry.artist, "track": entry.title}
    return named | picked(entry, "release", "listens", "first_at", "last_at")


def _listen(given: ListenIn) -> Listen:
    track = given.track_metadata
    about = track.additional_info
    return matching.heard(
        (given.listened_at or 0) * SECOND,
        track.artists,
        track.track_name,
        release=track.release_name,
        isrc=about.isrc,
        mbid=about.recording_mbid,
        player=about.media_player or about.submission_client,
    )
