"""Receive listens from players, as ListenBrainz does (docs/players.md)."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from musicsvc.clock import SECOND
from musicsvc.config import Settings
from musicsvc.errors import Malformed
from musicsvc.server.schemas.listens import ListenIn, ListensIn
from musicsvc.store.accounts.tokens import Identity
from musicsvc.store.engine.store import Store
from musicsvc.store.listens import matching, receiving
from musicsvc.store.listens.matching import Listen

WITHOUT = "Send a listening token, with the header Authorization: Token VALUE."
Matched = tuple[Sequence[Listen], Sequence[int | None]]  # listens, and their tracks


def validate(caller: Identity | None, credentials: str | None) -> dict[str, Any]:
    """Return whether the listening token is valid, and the name of its account. Raises Malformed without a token."""
    if credentials is None:
        raise Malformed(WITHOUT)
    if caller is None:
        return {"code": 200, "message": "Token invalid.", "valid": False}
    return {"code": 200, "message": "Token valid.", "valid": True, "user_name": caller.display_name}


def match(body: ListensIn, store: Store) -> Matched:
    """Return the listens of a submission with the tracks that they name."""
    if body.listen_type == "playing_now":
        return [], []
    listens = [_listen(each) for each in body.payload]
    return listens, store.read(partial(matching.find, listens)).result()


def submit(caller: Identity, prepared: Matched, settings: Settings, now: int) -> dict[str, Any]:
    """Store listens as plays of the caller. What plays now is checked, and stored nowhere."""
    own = settings.plays
    if prepared[0]:
        receiving.receive(*prepared, now=now, actor=caller, accepted=own.own, daily=own.own_daily)
    return {"status": "ok"}


def _listen(given: ListenIn) -> Listen:
    track = given.track_metadata
    about = track.additional_info
    return matching.heard(
        (given.listened_at or 0) * SECOND,
        track.artist_name,
        track.track_name,
        release=track.release_name,
        isrc=about.isrc,
        mbid=about.recording_mbid,
        player=about.media_player or about.submission_client,
    )
